// Posts two spans with OpenTelemetry's own JavaScript SDK and exporter: node post_spans.cjs URL json|protobuf none|gzip
const { SpanKind, SpanStatusCode, ROOT_CONTEXT, trace } = require('@opentelemetry/api');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { SimpleSpanProcessor, TracerProvider } = require('@opentelemetry/sdk-trace');

const [url, encoding, compression] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${encoding === 'json' ? 'http' : 'proto'}`);

const exporter = new OTLPTraceExporter({ url, headers: { Authorization: 'Bearer acme' }, compression });
const provider = new TracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'shop', 'host.name': 'h-1' }),
  spanProcessors: [new SimpleSpanProcessor({ exporter })],
});
const tracer = provider.getTracer('tests');
const root = tracer.startSpan('checkout', { kind: SpanKind.SERVER, attributes: { 'http.route': '/checkout' } }, ROOT_CONTEXT);
const links = [{ context: root.spanContext() }];
const child = tracer.startSpan('pay', { links }, trace.setSpan(ROOT_CONTEXT, root));
child.addEvent('declined', { code: 51 });
child.setStatus({ code: SpanStatusCode.ERROR, message: 'declined' });
child.end();
root.end();
provider.shutdown().catch((error) => {
  console.error(error);
  process.exit(1);
});
