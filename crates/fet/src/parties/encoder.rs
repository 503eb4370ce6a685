//! Encoder of metrics whose values are known only when Prometheus asks.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

/// Name and value of a label.
type Label = [(&'static str, String); 1];

/// Adds the version of the program to a registry. It is a gauge, a kind that every version of the text format knows.
pub(super) fn register_build(registry: &mut Registry) {
    let build: Family<[(&'static str, &'static str); 2], Gauge> = Family::default();
    build.get_or_create(&[("version", env!("CARGO_PKG_VERSION")), ("commit", env!("FET_COMMIT"))]).set(1);
    registry.register("build_info", "Version of the program", build);
}

/// Encoder of gauges and counters.
pub(super) struct Encoder<'a>(DescriptorEncoder<'a>);

impl<'a> Encoder<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.encode(name, help, &ConstGauge::new(value))
    }

    /// Encodes a gauge if its value is known.
    pub(super) fn known_gauge(&mut self, name: &str, help: &str, value: Option<f64>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.gauge(name, help, value))
    }

    /// Encodes a gauge for each value of a label.
    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (String, f64)>,
    ) -> fmt::Result {
        let family: Family<Label, Gauge<f64, AtomicU64>> = Family::default();
        for (word, value) in values {
            family.get_or_create(&[(label, word)]).set(value);
        }
        self.encode(name, help, &family)
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encode(name, help, &ConstCounter::new(value))
    }

    /// Encodes a counter for each value of a label.
    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (String, u64)>,
    ) -> fmt::Result {
        let family: Family<Label, Counter> = Family::default();
        for (word, value) in values {
            family.get_or_create(&[(label, word)]).inc_by(value);
        }
        self.encode(name, help, &family)
    }

    fn encode(&mut self, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, None, metric.metric_type())?)
    }
}
