"""`VideoView`, the message of Mux's streaming export of finished views: the value of topic `views.protobuf`.

Names, numbers and types are those of `video_view/v1/video_view.proto` of the public repository muxinc/mux-protobuf, version 18
(2026); proto2. Only fields that can be derived from a view's row are here; docs/view.md says from which field.
"""

from typing import Final

from shared.protobuf import Field, Message

TIMESTAMP: Final[Message] = {"seconds": Field(1, "int64"), "nanos": Field(2, "int32")}
DURATION: Final[Message] = TIMESTAMP

RENDITION_INFO: Final[Message] = {"bitrate": Field(4, "int64")}

ERROR_INFO: Final[Message] = {
    "error_code": Field(2, "string"),
    "error_message": Field(3, "string"),
    "error_context": Field(4, "string"),
    "error_severity": Field(5, "string"),
    "is_business_exception": Field(6, "bool"),
}

EVENT: Final[Message] = {
    "server_time": Field(1, TIMESTAMP),
    "viewer_time": Field(2, TIMESTAMP),
    "playhead_time": Field(3, DURATION),
    "type": Field(4, "string"),
    "rendition_info": Field(6, RENDITION_INFO),
    "sequence_number": Field(7, "uint64"),
    "error_info": Field(8, ERROR_INFO),
}

#: The numbers of `custom_1` to `custom_20`: they were added over four versions.
_CUSTOM: Final = (*range(14, 19), *range(123, 128), *range(152, 162))

VIDEO_VIEW: Final[Message] = {
    "view_id": Field(1, "string"),
    "property_id": Field(2, "string"),
    "view_start": Field(3, TIMESTAMP),
    "view_end": Field(4, TIMESTAMP),
    "events": Field(5, EVENT),
    "asn": Field(6, "int32"),
    "browser": Field(7, "string"),
    "cdn": Field(9, "string"),
    "city": Field(10, "string"),
    "country": Field(12, "string"),
    "exit_before_video_start": Field(20, "bool"),
    "experiment_name": Field(21, "string"),
    "max_downscale_percentage": Field(24, "float"),
    "max_upscale_percentage": Field(25, "float"),
    "mux_viewer_id": Field(28, "string"),
    "operating_system": Field(29, "string"),
    "page_load_time": Field(31, "int32"),
    "page_url": Field(33, "string"),
    "playback_success_score": Field(34, "float"),
    "player_autoplay": Field(35, "bool"),
    "player_error_code": Field(36, "string"),
    "player_error_message": Field(37, "string"),
    "player_height": Field(38, "int32"),
    "player_instance_id": Field(39, "string"),
    "player_name": Field(43, "string"),
    "player_preload": Field(45, "bool"),
    "player_software": Field(47, "string"),
    "player_software_version": Field(48, "string"),
    "player_source_duration": Field(50, "int64"),
    "player_source_url": Field(52, "string"),
    "player_startup_time": Field(54, "int32"),
    "player_width": Field(57, "int32"),
    "rebuffer_count": Field(58, "int32"),
    "rebuffer_duration": Field(59, "int32"),
    "rebuffer_frequency": Field(60, "float"),
    "rebuffer_percentage": Field(61, "float"),
    "region": Field(62, "string"),
    "session_id": Field(63, "string"),
    "smoothness_score": Field(64, "float"),
    "source_hostname": Field(65, "string"),
    "startup_time_score": Field(67, "float"),
    "sub_property_id": Field(68, "string"),
    "video_id": Field(73, "string"),
    "video_quality_score": Field(76, "float"),
    "video_series": Field(77, "string"),
    "video_startup_time": Field(78, "int32"),
    "video_title": Field(79, "string"),
    "view_downscaling_percentage": Field(82, "float"),
    "view_max_playhead_position": Field(83, "int64"),
    "view_playing_time": Field(84, "int64"),
    "view_seek_count": Field(85, "int32"),
    "view_seek_duration": Field(86, "int32"),
    "view_total_content_playback_time": Field(88, "int32"),
    "view_total_downscaling": Field(89, "float"),
    "view_total_upscaling": Field(90, "float"),
    "view_upscaling_percentage": Field(91, "float"),
    "viewer_connection_type": Field(93, "string"),
    "viewer_device_name": Field(96, "string"),
    "viewer_experience_score": Field(97, "float"),
    "viewer_user_id": Field(100, "string"),
    "watch_time": Field(101, "int32"),
    "weighted_average_bitrate": Field(103, "double"),
    "preroll_played": Field(106, "bool"),
    "preroll_requested": Field(107, "bool"),
    "max_request_latency": Field(111, "int32"),
    "request_latency": Field(112, "int32"),
    "request_throughput": Field(113, "int32"),
    "stream_type": Field(114, "string"),
    "live_stream_latency": Field(119, "int32"),
    "environment_id": Field(120, "string"),
    "view_dropped_frame_count": Field(129, "int32"),
    "view_has_ad": Field(130, "bool"),
    "video_startup_failure": Field(131, "bool"),
    "ad_attempt_count": Field(132, "int32"),
    "ad_break_count": Field(133, "int32"),
    "ad_error_count": Field(136, "int32"),
    "ad_impression_count": Field(138, "int32"),
    "view_content_startup_time": Field(147, "int32"),
    "ad_playing_time": Field(149, "int32"),
    "view_content_playing_time": Field(150, "int32"),
    "view_dropped": Field(151, "bool"),
    "video_cdn_trace": Field(179, "string"),
    "view_rendition_change_count": Field(184, "int32"),
    "view_rendition_upshift_count": Field(185, "int32"),
    "view_rendition_downshift_count": Field(186, "int32"),
    **{f"custom_{at}": Field(number, "string") for at, number in enumerate(_CUSTOM, 1)},
}
