//! Maps the configuration of a golden file to this program's slots and settings.

use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::Encoder;
use fet_core::method::Method;
use fet_core::objective::Objective;
use fet_core::registry::{Plugin, Slot, SlotKind};
use toml::{Table, Value};

use super::file::{GoldenError, GoldenFile};

/// Components of a golden file's model.
pub(super) struct GoldenSlots {
    pub(super) method: Slot<dyn Method>,
    pub(super) encoder: Slot<dyn Encoder>,
    pub(super) aggregator: Slot<dyn Aggregator>,
    pub(super) objective: Objective,
    /// Number of neighbours K.
    pub(super) neighbours: usize,
    /// Number of key columns of each party; 0 if the file lacks keys.
    pub(super) key_dims: Vec<usize>,
    /// Number of feature columns of each party.
    pub(super) data_dims: Vec<usize>,
}

impl GoldenSlots {
    pub(super) fn from_golden(golden: &GoldenFile) -> Result<Self, GoldenError> {
        let data_dims: Vec<usize> = golden.setting("data_dims")?;
        let (method, encoder, aggregator, key_dims) = match golden.method() {
            "fedsim" => (fedsim(golden)?, fedsim_encoder(golden)?, "concat", vec![0; data_dims.len()]),
            _ => (fet(golden)?, fet_encoder(golden)?, "average", golden.setting("key_dims")?),
        };
        if key_dims.len() != data_dims.len() || key_dims.len() < 2 {
            return Err(golden.bad("`key_dims` and `data_dims` must name the same two or more parties"));
        }
        Ok(Self {
            method: slot(golden, method)?,
            encoder: slot(golden, encoder)?,
            aggregator: slot(golden, Table::from_iter([("kind".to_string(), aggregator.into())]))?,
            objective: objective(golden)?,
            neighbours: golden.setting("neighbours")?,
            key_dims,
            data_dims,
        })
    }
}

fn slot<T>(golden: &GoldenFile, table: Table) -> Result<Slot<T>, GoldenError>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    Slot::from_table(table).map_err(|error| golden.bad(&format!("its configuration is impossible: {error}")))
}

/// Builds a table of settings.
fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn fet(golden: &GoldenFile) -> Result<Table, GoldenError> {
    let mut settings = table([
        ("kind", "fet".into()),
        ("hidden", count(golden, "hidden")?),
        ("heads", count(golden, "heads")?),
        ("agg_blocks", count(golden, "agg_blocks")?),
        ("positional_encoding", flag(golden, "positional_encoding")?),
        ("dropout", 0.0.into()),
        ("shared_norm", true.into()),
    ]);
    if golden.losses()?.is_some() {
        let optimizer: String = golden.setting("optimizer")?;
        let optimizer = table([
            ("kind", optimizer.into()),
            ("learning_rate", golden.number("lr")?.into()),
            ("weight_decay", golden.number("weight_decay")?.into()),
        ]);
        settings.insert("optimizer".into(), optimizer.into());
    }
    Ok(settings)
}

fn fet_encoder(golden: &GoldenFile) -> Result<Table, GoldenError> {
    Ok(table([
        ("kind", "transformer".into()),
        ("blocks", count(golden, "local_blocks")?),
        ("dynamic_mask", flag(golden, "dynamic_mask")?),
    ]))
}

fn fedsim(golden: &GoldenFile) -> Result<Table, GoldenError> {
    let widths = |name: &str| count(golden, name).map(|width| Value::Array(vec![width]));
    let local = table([("hidden", widths("local_hidden")?), ("width", count(golden, "cut")?)]);
    Ok(table([
        ("kind", "fedsim".into()),
        ("local", local.into()),
        ("pair_hidden", widths("agg_hidden")?),
        ("pair_outputs", count(golden, "raw_output_dim")?),
        ("weight_gate", flag(golden, "weight_gate")?),
        ("sort_gate", flag(golden, "sort_gate")?),
        ("conv_channels", count(golden, "conv_channels")?),
        ("conv_kernel", count(golden, "conv_kernel")?),
        ("conv_hidden", widths("merge_hidden")?),
        ("dropout", 0.0.into()),
    ]))
}

fn fedsim_encoder(golden: &GoldenFile) -> Result<Table, GoldenError> {
    let hidden = Value::Array(vec![count(golden, "local_hidden")?]);
    Ok(table([("kind", "mlp".into()), ("hidden", hidden)]))
}

fn count(golden: &GoldenFile, name: &str) -> Result<Value, GoldenError> {
    golden.setting::<i64>(name).map(Value::from)
}

fn flag(golden: &GoldenFile, name: &str) -> Result<Value, GoldenError> {
    golden.setting::<bool>(name).map(Value::from)
}

fn objective(golden: &GoldenFile) -> Result<Objective, GoldenError> {
    let task: String = golden.setting("task")?;
    let task = match task.as_str() {
        "reg" => Task::Regression,
        "bin" => Task::Binary,
        "cls" => Task::Multiclass,
        other => return Err(golden.bad(&format!("`task` must be reg, bin or cls; it is \"{other}\""))),
    };
    Ok(Objective { task, outputs: golden.setting("out_dim")?, minimum: 0.0, range: 1.0 })
}
