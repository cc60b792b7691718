"""The words that mux-embed shortens in its field names: one letter for a name's first word, two for each later one.

From mux-embed 5.19.0, MIT licence, Copyright (c) 2022 Mux, Inc.; see NOTICE.
"""

from collections.abc import Mapping
from typing import Final


def _table(pairs: str) -> Mapping[str, str]:
    return dict(pair.split("=") for pair in pairs.split())


#: Letter of a name's first word.
FIRST_WORDS: Final = _table(
    """
a=env b=beacon c=custom d=ad e=event f=experiment i=internal m=mux n=response p=player q=request r=retry s=session
t=timestamp u=viewer v=video w=page x=view y=sub
"""
)

#: Two letters of each later word.
LATER_WORDS: Final = _table(
    """
ad=ad af=affiliate ag=aggregate al=application ao=audio ap=api ar=architecture as=asset au=autoplay av=average
bi=bitrate bn=brand br=break bw=browser by=bytes bz=business ca=cached cb=cancel cc=codec cd=code ce=counter
cg=category ch=changed ci=client cj=channels ck=clicked cl=canceled cm=cmcd cn=config co=count cp=complete
cq=creator cr=creative cs=captions ct=content cu=current cv=cumulative cx=connection cz=context da=data
dg=downscaling dm=domain dn=cdn do=downscale dp=dropped dr=drm du=duration dv=device dy=dynamic eb=enabled
ec=encoding ed=edge ee=event eg=engine em=embed en=end ep=experiments er=error es=errorcode et=errortext ev=events
ex=expires ez=exception fa=failed fi=first fm=family fp=fps fq=frequency fr=frame fs=fullscreen ft=format ha=has
hb=holdback he=headers hn=hostname ho=host ht=height id=id ii=init in=instance ip=ip is=is ke=key la=language
lb=labeled ld=loaded le=level li=live lo=load ls=lists lt=latency lw=low ma=max md=media me=message mf=manifest
mi=mime ml=midroll mm=min mn=manufacturer mo=model mp=mode ms=ms mx=mux ne=newest nm=name no=number on=on or=origin
os=os pa=paused pb=playback pd=producer pe=percentage pf=played pg=program ph=playhead pi=plugin pl=preroll
pn=playing po=poster pp=pip pr=preload ps=position pt=part pv=previous px=pop py=property pz=plan ra=rate
rd=requested re=rebuffer rf=rendition rg=range rm=remote ro=ratio rp=response rq=request rs=requests sa=sample
sd=skipped se=session sh=shift si=sid sk=seek sm=stream so=source sq=sequence sr=series ss=status st=start
su=startup sv=server sw=software sy=severity ta=tag tc=tech te=text tg=target th=throughput ti=time tl=total to=to
tr=track tt=title ty=type ug=upscaling un=universal up=upscale ur=url us=user va=variant vd=viewed ve=version
vi=video vr=viewer vw=view wa=watch wd=width wt=waiting
"""
)
