//! Minimal plug-ins: only the required methods of each slot.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_components::model::{Init, Perceptron};
use fet_core::aggregator::{Aggregation, Aggregator, Combine, Role};
use fet_core::attack::{
    About as AttackAbout, Attack, AttackEnvironment, AttackError, Attacker, Measure, Run, Target,
};
use fet_core::data::{
    Bounds, DataError, Dataset, DatasetContext, KeyKind, Keys, Labelled, Matrix, PartyTable, Sealed, Source,
    Task, VerticalData,
};
use fet_core::encoder::{Encoder, EncoderContext, LocalModel, NeighbourBatch, Network};
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals};
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext, Slots,
};
use fet_core::model::{ModelShape, Pass};
use fet_core::optimizer::OptimizerSettings;
use fet_core::privacy::{Form, PrivacyMechanism, Release, Releases, Selection, Share, Spent, Tally};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines an empty settings type whose `build` is `$build`.
macro_rules! recipe {
    ($slot:ty, $settings:ident, $kind:literal, |$context:ident: $known:ty| $build:expr) => {
        /// Empty settings.
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        struct $settings {}

        impl Recipe<$slot> for $settings {
            fn build(&self, $context: &$known) -> Result<Box<$slot>, Violation> {
                Ok(Box::new($build))
            }
        }

        inventory::submit! { Plugin::<$slot>::new::<$settings>($kind, "a foreign plug-in") }
    };
}

// A linker: links the K nearest records by the first column.

recipe!(dyn Linker, LineSettings, "foreign-line", |_context: ()| LineLinker);

struct LineLinker;

impl Linker for LineLinker {
    fn about(&self) -> About {
        let reveals =
            Reveals { secondary: "every primary key", primary: "nothing", eavesdropper: "every primary key" };
        About { independent: true, ..About::new(3, KeyKind::Numbers, reveals) }
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(Self)
    }
}

impl DataHolder for LineLinker {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let keys =
            |keys: &Keys| keys.numbers().cloned().ok_or_else(|| LinkError::kind(KeyKind::Numbers, keys));
        let (queries, records) = (keys(task.queries)?, keys(task.records)?);
        let (mut indices, mut similarities) = (Vec::new(), Vec::new());
        for query in 0..queries.rows() {
            let distance = |record: usize| (queries.row(query)[0] - records.row(record)[0]).abs();
            let mut order: Vec<usize> = (0..records.rows()).collect();
            order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            order.truncate(3);
            similarities.extend(order.iter().map(|&record| -distance(record) as f32));
            indices.extend(order.iter().map(|&record| record as u32));
        }
        Ok(Links::new(3, 3, indices, similarities))
    }
}

// A linker with sealed keys, a challenge and no similarities.

recipe!(dyn Linker, AskingSettings, "foreign-asking", |_context: ()| Asking);

struct Asking;

impl Linker for Asking {
    fn about(&self) -> About {
        let reveals = Reveals { secondary: "a sum", primary: "a sum", eavesdropper: "a sum" };
        let about = About::new(2, KeyKind::Either, reveals);
        About { similarities: false, in_the_clear: false, challenges: true, ..about }
    }

    fn querier(&self, seed: u64) -> Box<dyn Querier> {
        Box::new(Side { seed, sum: 0 })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Side { seed, sum: 0 })
    }
}

struct Side {
    seed: u64,
    sum: u8,
}

impl Querier for Side {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        self.sum = self.seed as u8;
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), Vec::new())))
    }

    fn answer(&mut self, challenge: &Sealed) -> Result<Sealed, LinkError> {
        let sum = challenge.bytes().first().copied().unwrap_or_default().wrapping_add(self.sum);
        Ok(Sealed::new(1, 1, vec![sum]))
    }
}

impl DataHolder for Side {
    fn challenge(&mut self, _queries: &Keys, _records: &Keys) -> Result<Option<Sealed>, LinkError> {
        self.sum = 7;
        Ok(Some(Sealed::new(1, 1, vec![self.sum])))
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let expected = self.sum.wrapping_add(self.seed as u8);
        if task.answer.map(Sealed::bytes) != Some(&[expected]) {
            return Err(LinkError::Message("another answer is expected".into()));
        }
        let records = task.records.rows();
        let indices = (0..task.queries.rows()).flat_map(|row| [row % records, (row + 1) % records]);
        Ok(Links::without_similarities(2, 2, indices.map(|record| record as u32).collect()))
    }

    fn warnings(&mut self) -> Vec<String> {
        vec!["a foreign warning".into()]
    }
}

// An encoder: encodes each neighbour separately.

recipe!(dyn Encoder, SlimSettings, "foreign-slim", |context: EncoderContext<'_>| {
    let mut init = Init::new(context.weights.clone(), context.device);
    let layer = Perceptron::new(&mut init, context.feature_columns, &[], context.shape.hidden, 0.0);
    LocalModel::new(Slim { layer }, context)
});

#[derive(Module, Debug)]
struct Slim {
    layer: Perceptron,
}

impl Network for Slim {
    fn forward(&self, batch: &NeighbourBatch, pass: &mut Pass) -> Tensor<3> {
        let encoded = self.layer.forward(batch.features.clone(), pass);
        let width = encoded.dims()[1];
        encoded.select(0, batch.slots.clone()).reshape([batch.rows, batch.neighbours, width])
    }
}

// An aggregator: places the parts side by side, for methods that join records.

recipe!(dyn Aggregator, BesideSettings, "foreign-beside", |_context: ()| Beside);

struct Beside;

impl Aggregator for Beside {
    fn width(&self, parties: usize, hidden: usize) -> usize {
        parties * hidden
    }

    fn keeps_parts_apart(&self) -> bool {
        true
    }

    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }
}

impl Combine for Beside {
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        let longest = parts.iter().max_by_key(|part| part.dims()[1]).expect("a party is active").clone();
        let mut all = vec![longest.zeros_like(); round.parties];
        for (part, &party) in parts.into_iter().zip(&round.active) {
            // Broadcast a part of one position to the length of the longest part.
            all[party] = longest.zeros_like() + part;
        }
        Tensor::cat(all, 2)
    }
}

// A privacy mechanism that changes nothing.

recipe!(dyn PrivacyMechanism, OpenSettings, "foreign-open", |_context: ()| Open);

struct Open;

impl PrivacyMechanism for Open {
    fn is_identity(&self) -> bool {
        true
    }

    fn clip(&self, representation: Tensor<3>, _active: usize) -> Tensor<3> {
        representation
    }

    fn add_noise(&self, values: Vec<f32>, _release: &mut Release<'_>) -> Share {
        Share::Floats(values)
    }

    fn form(&self, _active: usize, _block: usize) -> Option<Form> {
        None
    }

    fn selection(&self) -> Selection {
        Selection::ALL
    }

    fn prepare(&mut self, _releases: &Releases) -> Result<(), Violation> {
        Ok(())
    }

    fn spent(&self, _releases: &Releases, _tallies: &[Tally]) -> Spent {
        Spent { epsilon: None, delta: 0.0, statement: "none".into(), guarantee: None }
    }
}

// A label protection that changes nothing and declares this.

recipe!(dyn LabelProtection, BareSettings, "foreign-bare", |_context: ()| Bare);

struct Bare;

impl LabelProtection for Bare {
    fn is_identity(&self) -> bool {
        true
    }

    fn spent(&self, _exposure: &Exposure) -> LabelPrivacy {
        LabelPrivacy { epsilon: None, delta: 0.0, mechanism: "foreign-bare".into(), statement: "none".into() }
    }
}

// A method: a linear model on the primary's features and the mean of the memory.

recipe!(dyn Method, PlainSettings, "foreign-plain", |_context: ()| Plain);

struct Plain;

impl Method for Plain {
    fn plan(&self) -> Plan {
        Plan { encoder: "foreign-slim", aggregator: "foreign-beside", width: 4, ..Plan::default() }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if slots.linker.about().neighbours < 2 {
            return Err(slots.refuse::<dyn Linker>("must give two neighbours"));
        }
        Ok(())
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let mut init = Init::new(context.weights.clone(), context.device);
        let inputs = context.feature_columns + context.memory_width;
        let layer = Perceptron::new(&mut init, inputs, &[], context.objective.outputs, 0.0);
        Ok(Box::new(PrimaryModel::new(PlainHalf { layer }, &OptimizerSettings::adam(), context)))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        encoder.build(&EncoderContext {
            device: context.device,
            weights: context.weights.clone(),
            neighbours: context.neighbours,
            key_columns: 0,
            feature_columns: context.feature_columns,
            computation: context.computation,
            shape: &ModelShape {
                hidden: 4,
                heads: 1,
                dropout: 0.0,
                positional_encoding: false,
                frequency_std: 1.0,
                shared_norm: false,
            },
            optimizer: &OptimizerSettings::adam(),
        })
    }
}

#[derive(Module, Debug)]
struct PlainHalf {
    layer: Perceptron,
}

impl PrimaryNetwork for PlainHalf {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let memory = memory.expect("the plan has secondaries").tensor.clone();
        let [rows, _, width] = memory.dims();
        let mean = memory.mean_dim(1).reshape([rows, width]);
        self.layer.forward(Tensor::cat(vec![batch.features.clone(), mean], 1), pass)
    }
}

// A dataset and a source.

recipe!(dyn Dataset, ThreeSettings, "foreign-three", |context: DatasetContext<'_>| Three(context.seed));

struct Three(u64);

impl Dataset for Three {
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    fn load(&self) -> Result<VerticalData, DataError> {
        let mut rng = stream(self.0, 0, Purpose::Parties, 1);
        let keys: Vec<f64> = (0..120).map(|_| rng.random()).collect();
        let party = |name: &str, scale: f32| PartyTable {
            name: name.to_string(),
            keys: Matrix::new(2, keys.clone()).into(),
            features: Matrix::new(1, keys.chunks(2).map(|key| scale * key[0] as f32).collect()).into(),
            bounds: Some(Bounds { keys: vec![[0.0, 1.0]; 2], features: vec![[0.0, f64::from(scale)]] }),
        };
        Ok(VerticalData {
            task: Task::Regression,
            classes: 1,
            labels: keys.chunks(2).map(|key| key[0] + key[1]).collect(),
            primary: party("one", 1.0),
            secondaries: vec![party("two", 2.0), party("three", 3.0)],
            standardise: fet_core::data::Standardise::ALL,
            metadata: fet_core::data::Metadata::default(),
        })
    }
}

recipe!(dyn Source, WaveSettings, "foreign-wave", |context: DatasetContext<'_>| Wave(context.seed));

struct Wave(u64);

impl Source for Wave {
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let mut rng = stream(self.0, 0, Purpose::Parties, 1);
        let values: Vec<f32> = (0..60 * 8).map(|_| rng.random::<f32>()).collect();
        let labels = values.chunks(8).map(|row| f64::from(u8::from(row[0] > row[1]))).collect();
        Ok(Labelled { task: Task::Binary, classes: 2, features: Matrix::new(8, values), labels })
    }
}

// An attack that observes one run and finds nothing.

recipe!(dyn Attack, IdleSettings, "foreign-idle", |_context: ()| Idle);

struct Idle;

impl Attack for Idle {
    fn about(&self) -> AttackAbout {
        AttackAbout { attacker: Attacker::Primary, target: Target::Features, party: 2 }
    }

    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError> {
        let metric = environment.train(Run::default())?.metric();
        Ok(vec![Measure::new("nothing", metric, metric, f64::from(u8::MAX))])
    }
}
