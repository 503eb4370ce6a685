//! OpenTelemetry traces of runs, parties and services, exported by OTLP over HTTP (feature `telemetry`).
//!
//! The standard environment variables of OpenTelemetry configure the export. Without an endpoint
//! the program starts no thread, and the spans in the code cost nothing. The program exports only its own spans, which have
//! the target `fet`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fet_io::input::InputError;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use ureq::Agent;

/// Target of the program's own spans.
const TARGET: &str = "fet";
/// Maximum time of an export.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a collector's answer.
const LARGEST_ANSWER: u64 = 1 << 20;

/// Export of the spans of this process, which ends when it is dropped.
pub(crate) struct Telemetry(SdkTracerProvider);

impl Telemetry {
    /// Starts the export if an environment variable names an endpoint.
    ///
    /// # Errors
    /// Returns an error if a variable is invalid.
    pub(crate) fn start() -> Result<Option<Self>, InputError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .into_iter()
            .find_map(|name| Some((name, set(name)?)));
        let is_off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").as_deref() == Some("none");
        let Some((name, endpoint)) = endpoint.filter(|_| !is_off) else { return Ok(None) };
        let protocol = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
            .into_iter()
            .find_map(|name| Some((name, set(name)?)));
        let protocol = match protocol.as_ref().map(|(name, value)| (*name, value.as_str())) {
            None | Some((_, "http/protobuf")) => Protocol::HttpBinary,
            Some((_, "http/json")) => Protocol::HttpJson,
            Some((name, value)) => {
                return Err(InputError(format!(
                    "{name} must be \"http/protobuf\" or \"http/json\"; it is {value:?}"
                )));
            }
        };
        let exporter =
            SpanExporter::builder().with_http().with_protocol(protocol).with_http_client(Client::new());
        let exporter =
            exporter.build().map_err(|error| InputError(format!("{name} is {endpoint:?}: {error}")))?;
        let mut resource = Resource::builder();
        let attributes = set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        if set("OTEL_SERVICE_NAME").is_none() && !attributes.contains("service.name=") {
            resource = resource.with_service_name("fet");
        }
        let resource =
            resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer(TARGET))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|about| about.target() == TARGET));
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
            .map_err(|error| InputError(format!("OpenTelemetry cannot start: {error}")))?;
        Ok(Some(Self(provider)))
    }
}

impl Drop for Telemetry {
    /// Exports the remaining spans.
    fn drop(&mut self) {
        // The client has already reported a collector that does not answer.
        let _ = self.0.shutdown_with_timeout(PATIENCE);
    }
}

/// HTTP client of the exporter, which reports the first failure.
#[derive(Debug)]
struct Client {
    agent: Agent,
    has_failed: AtomicBool,
}

impl Client {
    fn new() -> Self {
        let settings = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        Self { agent: settings.build().into(), has_failed: AtomicBool::new(false) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let answer = self.agent.run(request.map(|body| body.to_vec()))?;
        let (about, mut body) = answer.into_parts();
        let body = body.with_config().limit(LARGEST_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(about, body.into()))
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let place = request.uri().to_string();
        let answer = self.send(request);
        let problem = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answers with status {}", answer.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem.filter(|_| !self.has_failed.swap(true, Ordering::Relaxed)) {
            fet_io::note!("warning: {place}: {problem}; OpenTelemetry spans are lost");
        }
        Ok(answer?)
    }
}
