"""Settings of experiments as typed classes, with the names, types and meanings that the program states.

Each class makes a table of settings: `fet.run(problem, set={"method": FetPoolMethod(width=16), "train": Train(epochs=5)})`.
A setting that is left out has its default. `tools/write_options.py` writes this file.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal


class Options(dict[str, Any]):
    """Table of settings."""

    def __init__(self, kind: str | None, given: Mapping[str, Any]) -> None:
        """Keep the settings that are given."""
        named = {} if kind is None else {"kind": kind}
        kept = {name: value for name, value in given.items() if name not in ("self", "__class__") and value is not None}
        # A word of Python has an underscore after it, as in `class_`.
        super().__init__({**named, **{name.rstrip("_"): value for name, value in kept.items()}})


class Train(Options):
    """Length of the run and batch sizes.

    Args:
        epochs: Number of passes over the training rows. Default: 20.
        batch_size: Number of rows per training step. Default: 128.
        evaluation_batch_size: Number of rows per evaluation step; affects speed and memory, not results. Default: 256.
        evaluation_cache: Megabytes of representations that the secondaries of a process keep during an evaluation, so
            that neighbours shared by several rows are encoded once; affects speed and memory, not results. 0 for none.
            With a privacy mechanism the secondaries keep nothing. Default: 96.
        decay: Schedule of the learning rate. Default: "plateau".
        patience: Number of epochs without a better validation metric that count as a plateau. Default: 5.
        factor: Factor that multiplies the learning rate at a plateau. Default: 0.5.
        recompute: True if secondaries drop their graphs and compute forward passes twice: the same results up to
            rounding, and less memory with many parties. Default: false.
        kernels: Implementation of the blocks that have fused kernels: the same results up to rounding. Default: "auto".
        batches: Sampling of the rows of a training step. Default: "shuffled".
        neighbours_per_step: Number of neighbours of a row that a training step sees; 0 for all. The time of a step
            falls roughly in proportion. Evaluations and predictions see all neighbours. Default: 0.
        neighbours_shown: Choice of the neighbours that a training step sees. Default: "random".
        neighbours_until: Share of the epochs, from the first, in which a step sees only some neighbours; in later
            epochs it sees all. Default: 1.0.
        class_weights: Weight of a row's loss, by its class: "none", "balanced" (all classes have the same total
            weight), or one weight for each class. It concerns only the primary. Default: "none".
        target: Transformation of a regression's labels before training: "none", "log" (ln(1 + label), for labels from 0
            on with a long tail), or "quantile" (the rank among the training labels). Predictions, scores and intervals
            are in the label's own unit. With a transformation, a prediction is closer to the median of the label than
            to its mean, so that the mean absolute error often falls and the RMSE may rise. It concerns only the
            primary. Default: "none".
        gate: True if a run with `[release]` also trains without its columns, and keeps the model with them only if they
            improve the metric on the validation rows by more than a standard error. The releases cost ε in either case.
            It concerns only the primary. Default: true.
        refine_keys: True if the primary replaces its keys for linking by keys predicted from its own columns, with a
            linear regression on its training rows. This helps if the keys are imprecise and the columns say more. A
            party that learns keys from the linker then learns this information about the columns. It concerns only the
            primary. Default: false.
        key_inputs: True if models see the keys as inputs. With false, keys only link records: the models of all parties
            see zeros in their place, and a positional encoding is constant. Columns computed from keys
            (`data.key_features`) stay. Default: true.
        early_stopping: Number of epochs without a better validation metric after which the run ends; 0 for never. It
            does not apply to methods that take all training rows at once (`gbdt-*`, `linear-*`): their epochs are steps
            of a search that has a fixed length. Default: 0.
        wire: Form of the messages between parties in one process: with "bytes" they are serialised, which gives the
            same results more slowly. Default: "direct".
        randomness: Origin of each party's private randomness in a simulation: "experiment", so that a run repeats, or
            "own", a seed for each party from the operating system. A separate party always has its own seed. Default:
            "experiment".
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        evaluation_batch_size: int | None = None,
        evaluation_cache: int | None = None,
        decay: Literal["plateau", "cosine"] | None = None,
        patience: int | None = None,
        factor: float | None = None,
        recompute: bool | None = None,
        kernels: Literal["auto", "fused", "tensor"] | None = None,
        batches: Literal["shuffled", "poisson"] | None = None,
        neighbours_per_step: int | None = None,
        neighbours_shown: Literal["random", "nearest"] | None = None,
        neighbours_until: float | None = None,
        class_weights: Literal["none", "balanced"] | Sequence[float] | None = None,
        target: Literal["none", "log", "quantile"] | None = None,
        gate: bool | None = None,
        refine_keys: bool | None = None,
        key_inputs: bool | None = None,
        early_stopping: int | None = None,
        wire: Literal["direct", "bytes"] | None = None,
        randomness: Literal["experiment", "own"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Split(Options):
    """Split of the primary's records into training, validation and test records.

    Args:
        kind: Rule that assigns records to parts. Default: "random".
        column: Column of the primary's table that decides a split by time, group or column, or replaces the label in a
            stratified split; it may be a dropped column.
        file: Table with a column `part`, and one row for each row of the primary's file.
        validation: Share of records for validation, which selects the epoch. Default: 0.1.
        test: Share of records for the test. Default: 0.2.
        training_share: Share of the training records that the run uses, drawn by seed; all other training records are
            left out. A smaller share is part of a larger one, so that several runs show the effect of more labels.
        folds: Number of folds of a cross-validation, each tested once; 0 for none. It must be 0, or at least 2.
            Default: 0.
        fold: Fold that this run tests, from 0. It must be below `folds`. Default: 0.
        tuning: True if this run is part of a search over settings, which must not see the test rows. Half of the
            validation rows then select the epoch, and the other half replaces the test rows.
    """

    def __init__(
        self,
        *,
        kind: Literal["random", "stratified", "time", "group", "column", "file"] | None = None,
        column: str | None = None,
        file: str | None = None,
        validation: float | None = None,
        test: float | None = None,
        training_share: float | None = None,
        folds: int | None = None,
        fold: int | None = None,
        tuning: bool | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Scores(Options):
    """Scores of the run.

    Args:
        metric: Metric that selects the epoch, drives the schedule of the learning rate and appears in tables. By
            default it is "rmse" for a regression and "accuracy" for classes.
        groups: Column of the primary's table by whose values test rows are also scored; it may be a dropped column.
        coverage: Target coverage: the probability that the interval of a prediction, or its set of classes, contains
            the true label. Default: 0.9.
    """

    def __init__(
        self,
        *,
        metric: Literal["rmse", "mae", "r2", "mape", "median-absolute-error", "accuracy", "balanced-accuracy", "macro-f1", "auc-roc", "auc-pr", "log-loss", "brier", "calibration-error"] | None = None,
        groups: str | None = None,
        coverage: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Policy(Options):
    """Limits that the secondaries of a simulation put on the primary's requests.

    Args:
        linkers: Linkers that the party accepts; an empty list accepts all. Default: [].
        mechanisms: Privacy mechanisms that the party accepts; include "none" to allow runs without a mechanism. An
            empty list accepts all; with `most_epsilon` it leaves out mechanisms such as "gaussian", whose ε holds only
            for an idealisation. Default: [].
        aggregators: Aggregators that the party accepts; an empty list accepts all. To keep the party's contribution
            hidden in a sum, name only aggregators that use secure aggregation. Default: [].
        releases: Kinds of `[release]` that the party accepts. An empty list accepts all, unless the policy sets
            `mechanisms`, `aggregators`, `learning`, `least_noise` or `least_summed`, which are about answers in a
            training: then it accepts none. Default: [].
        most_epsilon: Maximum ε of a run, computed at `most_delta`; 0 for no limit. Default: 0.0.
        most_delta: The δ at which `most_epsilon` limits ε, for any `privacy.delta`. Choose it well below one divided by
            the number of records. Default: 1e-05.
        neighbouring: Values of `privacy.neighbouring` that the party accepts. An empty list accepts all; with
            `most_epsilon` it accepts "replace" and "record", which protect a record that is replaced. Default: [].
        learning: Values of `privacy.learning` that the party accepts. An empty list accepts all; with `most_epsilon` it
            leaves out "assumed", whose ε omits what the models learn from the records. Default: [].
        least_noise: Minimum noise of a run, in units of the clipping norm; 0 for no limit. Default: 0.0.
        lifetime_epsilon: Maximum ε of all runs together in the party's state folder, computed at `most_delta`; 0 for no
            limit. Default: 0.0.
        least_summed: Minimum number of parties in a secure aggregation; the sum over one party would reveal its value.
            Default: 2.
        differing_sums: True to allow sums without a privacy mechanism over different sets of parties for the same rows,
            after party dropout or when a party drops out of the run, and predictions by secure sums. The primary can
            then compute this party's contribution. Only a party whose `aggregators` or `least_summed` require secure
            aggregation refuses such sums. Default: false.
        least_mask_neighbours: Minimum number of other parties with which the party shares masks, if that number of
            other parties takes part. Default: 2.
        least_rows: Minimum number of primary records in a run and in each request for predictions. Default: 1.
        probes: True to answer requests for rows outside the schedule, such as an attack sends in a simulation. `fet
            party` refuses this setting with a privacy mechanism, because ε does not cover the rows that such requests
            can select. Default: false.
        predictions: True to answer requests for predictions. The parties of a simulation always answer them. Default:
            false.
        most_predictions: Maximum number of new records that the party links for predictions, over all runs together; 0
            for no limit. The parties of a simulation have no limit. Default: 100000.
    """

    def __init__(
        self,
        *,
        linkers: Sequence[str] | None = None,
        mechanisms: Sequence[str] | None = None,
        aggregators: Sequence[str] | None = None,
        releases: Sequence[str] | None = None,
        most_epsilon: float | None = None,
        most_delta: float | None = None,
        neighbouring: Sequence[Literal["replace", "add-remove", "record"]] | None = None,
        learning: Sequence[Literal["counted", "assumed", "frozen"]] | None = None,
        least_noise: float | None = None,
        lifetime_epsilon: float | None = None,
        least_summed: int | None = None,
        differing_sums: bool | None = None,
        least_mask_neighbours: int | None = None,
        least_rows: int | None = None,
        probes: bool | None = None,
        predictions: bool | None = None,
        most_predictions: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Primary(Options):
    """Table `primary`.

    Args:
        name: Name of the party in reports; empty to use the name of its file.
        file: File of the table: CSV with any delimiter, Parquet or Arrow; may end in `.gz` or `.zst`. The program
            searches the experiment's folder, then the data folder.
        keys: Names of the key columns, in the same order for all parties. It must be at least one column, each named
            once, as many as the primary's.
        drop: Names of columns to leave out; empty to use all.
        columns: Kinds of columns, as `column = "kind"`, that replace the kinds shown by `fet data show`; empty to infer
            all. A key of numbers may be a "date", which becomes days since 1970, or a "time", which becomes hours.
        delimiter: Delimiter between the cells of a line: one character, or "tab"; empty to detect the delimiter. It
            must be one character (no quote, no line end), "tab" or empty.
        missing: Marks of a missing cell, in addition to an empty cell; empty for the usual marks (NA, N/A, NaN, null,
            None, ?); [""] for empty cells only. The usual marks do not count in a column that `columns` declares as a
            category.
        scaling: Scaling of number columns without a range in `bounds`.
        clip: Names of columns with outliers, clipped to their quantiles of 1 % and 99 % before scaling; empty for only
            the clipping of `scaling` "robust".
        one_hot: Maximum number of values of a category with one column per value. Categories with more values are
            hashed; 0 hashes every category.
        buckets: Number of columns for a hashed category or a text.
        bounds: Ranges of the number columns of a secondary, including keys, as `column = [low, high]`, from public
            knowledge. The secondary scales by these ranges. If `bounds`, `dates` and `categories` are all empty, it
            scales by means and deviations, which is refused with a privacy mechanism. A secondary declares either every
            column except texts, or no column. It must be ranges [low, high]: finite, low below high.
        dates: Ranges of the date columns of a secondary, as `column = [first, last]` in ISO 8601, from public
            knowledge; empty, together with `bounds` and `categories`, to declare no column. It must be ranges [first,
            last] of dates in ISO 8601.
        categories: All values of each category of a secondary, as `column = [values]`, from public knowledge; empty,
            together with `bounds` and `dates`, to declare no column. Other values count as unknown. It must be lists of
            at least one value.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        file: str | None = None,
        keys: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        columns: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        missing: Sequence[str] | None = None,
        scaling: Literal["standard", "robust", "none"] | None = None,
        clip: Sequence[str] | None = None,
        one_hot: int | None = None,
        buckets: int | None = None,
        bounds: Mapping[str, Any] | None = None,
        dates: Mapping[str, Any] | None = None,
        categories: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Secondaries(Options):
    """Table `secondaries`.

    Args:
        name: Name of the party in reports; empty to use the name of its file.
        file: File of the table: CSV with any delimiter, Parquet or Arrow; may end in `.gz` or `.zst`. The program
            searches the experiment's folder, then the data folder.
        keys: Names of the key columns, in the same order for all parties. It must be at least one column, each named
            once, as many as the primary's.
        drop: Names of columns to leave out; empty to use all.
        columns: Kinds of columns, as `column = "kind"`, that replace the kinds shown by `fet data show`; empty to infer
            all. A key of numbers may be a "date", which becomes days since 1970, or a "time", which becomes hours.
        delimiter: Delimiter between the cells of a line: one character, or "tab"; empty to detect the delimiter. It
            must be one character (no quote, no line end), "tab" or empty.
        missing: Marks of a missing cell, in addition to an empty cell; empty for the usual marks (NA, N/A, NaN, null,
            None, ?); [""] for empty cells only. The usual marks do not count in a column that `columns` declares as a
            category.
        scaling: Scaling of number columns without a range in `bounds`.
        clip: Names of columns with outliers, clipped to their quantiles of 1 % and 99 % before scaling; empty for only
            the clipping of `scaling` "robust".
        one_hot: Maximum number of values of a category with one column per value. Categories with more values are
            hashed; 0 hashes every category.
        buckets: Number of columns for a hashed category or a text.
        bounds: Ranges of the number columns of a secondary, including keys, as `column = [low, high]`, from public
            knowledge. The secondary scales by these ranges. If `bounds`, `dates` and `categories` are all empty, it
            scales by means and deviations, which is refused with a privacy mechanism. A secondary declares either every
            column except texts, or no column. It must be ranges [low, high]: finite, low below high.
        dates: Ranges of the date columns of a secondary, as `column = [first, last]` in ISO 8601, from public
            knowledge; empty, together with `bounds` and `categories`, to declare no column. It must be ranges [first,
            last] of dates in ISO 8601.
        categories: All values of each category of a secondary, as `column = [values]`, from public knowledge; empty,
            together with `bounds` and `dates`, to declare no column. Other values count as unknown. It must be lists of
            at least one value.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        file: str | None = None,
        keys: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        columns: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        missing: Sequence[str] | None = None,
        scaling: Literal["standard", "robust", "none"] | None = None,
        clip: Sequence[str] | None = None,
        one_hot: int | None = None,
        buckets: int | None = None,
        bounds: Mapping[str, Any] | None = None,
        dates: Mapping[str, Any] | None = None,
        categories: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class LinkedData(Options):
    """Tables of several organisations.

    Args:
        task: Prediction task: a number, one of two classes or one of several. Default: "regression".
        label: Name of the primary's label column. Default: "".
        key_kind: Kind of values in the key columns of all parties. Default: "numbers".
        key_features: True if each party's model also sees numbers computed from the party's keys: for two points
            (`start_lon`, `start_lat`, `end_lon`, `end_lat`) their differences, distance and direction, and for a date
            or time cosines and sines of the hour, the day of the week and the day of the year, also with
            `train.key_inputs = false`. A table with declared ranges has none of them. Default: false.
        standardise_keys: True if the models see keys with mean 0 and standard deviation 1, false if they see keys in
            their own unit. Linkers always see keys in their own unit. Default: true.
        rows: Number of primary rows to use, drawn by seed; 0 for all. Default: 0.
        primary: Table of the primary, the party with the labels.
        secondaries: Tables of the secondaries, one per secondary. It must be at least one table. Default: [].
    """

    def __init__(
        self,
        *,
        task: Literal["regression", "binary", "multiclass"] | None = None,
        label: str | None = None,
        key_kind: Literal["numbers", "text"] | None = None,
        key_features: bool | None = None,
        standardise_keys: bool | None = None,
        rows: int | None = None,
        primary: Primary | None = None,
        secondaries: Sequence[Secondaries] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("linked", locals())


class CsvSource(Options):
    """A labelled table in a CSV file.

    Args:
        file: CSV file; may end in `.gz`. The program searches the experiment's folder, then the data folder. Default:
            "".
        label: Name of the label column. Default: "".
        drop: Names of columns to leave out; empty to use all. Default: [].
        task: Prediction task: a number, one of two classes or one of several. Default: "regression".
    """

    def __init__(
        self,
        *,
        file: str | None = None,
        label: str | None = None,
        drop: Sequence[str] | None = None,
        task: Literal["regression", "binary", "multiclass"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("csv", locals())


class DigitsSource(Options):
    """1,797 handwritten digits of 8 x 8 pixels.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("digits", locals())


class IdxSource(Options):
    """Images and labels in the format of MNIST.

    Args:
        images: Image files in the format of MNIST, read one after another; names may end in `.gz`. The program searches
            the experiment's folder, then the data folder. It must be at least one file. Default: [].
        labels: Label files of the images, in the same order. It must be as many files as `images`. Default: [].
    """

    def __init__(
        self,
        *,
        images: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("idx", locals())


class LibsvmSource(Options):
    """A labelled table of sparse rows, index:value.

    Args:
        file: File in the format of LIBSVM; may end in `.gz`. The program searches the experiment's folder, then the
            data folder. Default: "".
        columns: Number of feature columns; 0 for the largest index in the file. Default: 0.
        task: Prediction task: a number, one of two classes or one of several. For a binary task, the labels -1 and +1
            become 0 and 1. Default: "binary".
    """

    def __init__(
        self,
        *,
        file: str | None = None,
        columns: int | None = None,
        task: Literal["regression", "binary", "multiclass"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("libsvm", locals())


class ProbesSource(Options):
    """Two classes of another table, with products of its columns and with probes, as gisette.

    Args:
        inner: Settings and kind of the other table.
        classes: Two classes of the other table: the first becomes 0, the second 1. Default: [4, 9].
        rows: Number of rows, half of each class, drawn by seed; 0 for all. It must be 0, or an even number. Default: 0.
        columns: Total number of columns. Default: 5000.
        kept: Share of the other table's non-constant columns to keep. Default: 0.5.
        probes: Share of the columns that are probes. Default: 0.5.
        seed: Seed of all random choices. Default: 0.
    """

    def __init__(
        self,
        *,
        inner: Mapping[str, Any] | None = None,
        classes: Sequence[int] | None = None,
        rows: int | None = None,
        columns: int | None = None,
        kept: float | None = None,
        probes: float | None = None,
        seed: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("probes", locals())


class SplitData(Options):
    """One table cut by columns among parties with noisy keys.

    Args:
        parties: Number of parties, including the primary. Default: 4.
        key_dims: Number of dimensions of the key, or of words of a name. A principal key has at most as many dimensions
            as the primary has columns. Default: 4.
        keys: True key of a row, before noise. Default: "principal".
        key_noise: Standard deviation of each party's noise on its keys; for names, the share of letters with a typing
            error; 0 for no noise. A principal key has standard deviation 1 in each dimension. Default: 0.05.
        key_noises: Noise of each party, the primary first, in the unit of `key_noise`; empty to use `key_noise` for all
            parties. It must be empty, or one value for each party. Default: [].
        imbalance: α of the Dirichlet draw of the parties' shares of the columns. Smaller values give more unequal
            shares; 0 gives equal shares. Default: 0.0.
        rows: Number of rows to use, drawn by seed; 0 for all. Default: 0.
        partition_seed: Seed of the partition of columns, the keys and their noise. The default is the run's seed.
        bounds: Range [low, high] of every value of the table, from public knowledge, such as the range of a pixel.
            Secondaries scale by this range. Without it, each secondary scales by the means and deviations of its
            columns, which is refused with a privacy mechanism. It must be a range [low, high]: finite, low below high.
        source: Table whose columns are divided among the parties.
    """

    def __init__(
        self,
        *,
        parties: int | None = None,
        key_dims: int | None = None,
        keys: Literal["principal", "uniform", "names"] | None = None,
        key_noise: float | None = None,
        key_noises: Sequence[float] | None = None,
        imbalance: float | None = None,
        rows: int | None = None,
        partition_seed: int | None = None,
        bounds: Sequence[float] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("split", locals())


class AlignedLinker(Options):
    """The next K records for each row.

    Args:
        neighbours: Number K of records that belong to each primary record. Default: 1.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("aligned", locals())


class ClkLinker(Options):
    """Texts compared as keyed Bloom filters (cryptographic long-term keys).

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        bits: Length of a record's Bloom filter before hardening, in bits. It must be a power of two. Default: 2048.
        q: Length of the hashed q-grams, in characters. Default: 3.
        load: Mean number of insertions into a filter, as a share of its length. It determines the number of bits that
            q-grams set. Default: 0.2.
        weighting: Number of bits that each q-gram sets. Default: "rarity".
        scoring: Meaning of a similarity. `match-weights` is not available for tables that are encoded separately (`fet
            link schema`). Default: "correlation".
        weights: Weight of each key column, which multiplies the bits of its q-grams; empty for equal weights. It must
            be empty, or weights with at least one above 0. Default: [].
        groups: Group number of each key column. Columns of one group use the same hashes, so that their texts may be
            swapped. Empty if no columns may be swapped. Default: [].
        near: For each key column of numbers, the distance from which two numbers have nothing in common (nearer numbers
            are more similar); 0 for columns of texts. Empty if all columns are texts. Default: [].
        dates: Numbers of the key columns (the first is 1) with dates, for which `near` is in days. Dates may be written
            as 1990-02-03, 3.2.1990 or 19900203. The cells of each column show its order of day and month
            (`date_order`). Default: [].
        date_order: Order of day and month in dates that do not begin with the year, at both parties. It applies if the
            cells of a column do not show the order. Default: "auto".
        decimal: Decimal separator of numbers in columns with a distance in `near`, at both parties. It applies if the
            cells of a column do not show the separator. Default: "auto".
        hardening: Protection of filters against attacks on the frequencies of their bits. Default: "none".
        diffusion: Number of a filter's bits that `hardening = "diffusion"` combines into each bit. A larger number
            hides more, but finds only more similar records. Default: 10.
        salt_column: Number of the key column (the first is 1) whose value changes all hashes of a record, such as the
            year of birth; 0 for none. The frequency of a name is then its frequency among records with the same value.
            A record with a missing or wrong value is not linked. Default: 0.
        salt_signs: Number of leading characters of that value's normal form that count (4 for the year of 1956-04-09);
            0 for all. Default: 0.
        secret_env: Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
            where the seed determines the secret. It must be the name of an environment variable, or empty. Default: "".
        missing: Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
            Default: [].
        blocking: Use of blocking, which compares only pairs that agree in all bits of at least one sample. Default:
            "auto".
        block_bits: Number of bits of each sample. With 0, the linker chooses the number if comparing all pairs would
            take minutes. Default: 0.
        block_recall: Probability that blocking compares two records with similarity `block_similarity`. It determines
            the number of tables. Default: 0.99.
        block_similarity: Dice similarity of two filters at which `block_recall` holds. Default: 0.65.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        bits: int | None = None,
        q: int | None = None,
        load: float | None = None,
        weighting: Literal["rarity", "entropy"] | None = None,
        scoring: Literal["correlation", "match-weights"] | None = None,
        weights: Sequence[float] | None = None,
        groups: Sequence[int] | None = None,
        near: Sequence[float] | None = None,
        dates: Sequence[int] | None = None,
        date_order: Literal["auto", "day-first", "month-first"] | None = None,
        decimal: Literal["auto", "point", "comma"] | None = None,
        hardening: Literal["none", "balanced", "xor-fold", "rehash", "diffusion"] | None = None,
        diffusion: int | None = None,
        salt_column: int | None = None,
        salt_signs: int | None = None,
        secret_env: str | None = None,
        missing: Sequence[str] | None = None,
        blocking: Literal["auto", "never"] | None = None,
        block_bits: int | None = None,
        block_recall: float | None = None,
        block_similarity: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("clk", locals())


class EditLinker(Options):
    """Texts compared in the clear by edit similarity.

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        missing: Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
            Default: [].
        weights: Weight of each key column in the mean similarity of two records; empty for equal weights. It must be
            empty, or weights with at least one above 0. Default: [].
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        missing: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("edit", locals())


class ExactLinker(Options):
    """Records with an equal key.

    Args:
        neighbours: Number K of records that are linked to each primary record. Records without an equal key are drawn
            at random. Default: 1.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        missing: Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
            Default: [].
        compare: Comparison of text keys: unchanged, in normal form, or as the primary's cells of each column determine.
            Default: "auto".
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        missing: Sequence[str] | None = None,
        compare: Literal["auto", "verbatim", "normal"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("exact", locals())


class FederalLinker(Options):
    """Numbers compared as bit vectors around secret pivots (FEDERAL).

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        threshold: Maximum distance from a pivot at which its bit is set, as a share of a column's range. Distances
            beyond twice this threshold cannot be distinguished. Default: 0.1.
        epsilon: Relative error ε of a distance that is estimated from bits. A distance of `threshold` is estimated
            within the factor 1 ± ε, except with probability δ. It is unrelated to privacy loss. Default: 0.2.
        delta: Probability δ that a distance of `threshold` is estimated with a relative error above ε. Default: 0.01.
        bits: Length of a column's bit vector. With 0, ε, δ and the threshold determine the length: 3 ln(2/δ) / (ε² p)
            bits, where p is the share of differing bits of two numbers at a distance of `threshold`. Default: 0.
        secret_env: Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
            where the seed determines the secret. It must be the name of an environment variable, or empty. Default: "".
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        threshold: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        bits: int | None = None,
        secret_env: str | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("federal", locals())


class GridLinker(Options):
    """The K nearest keys after rounding to a grid (an example).

    Args:
        neighbours: K, the number of neighbours for each primary record. Default: 20.
        step: Distance between two grid lines, in the keys' unit. Default: 0.1.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        step: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("grid", locals())


class HnswLinker(Options):
    """Approximately the K nearest keys, for keys of many dimensions.

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        construction: Number of candidates examined when a record is inserted into the graph (ef_construction; Malkov &
            Yashunin 2018). A larger number finds more of the true neighbours and is slower. Default: 100.
        search: Number of candidates examined for a query (ef_search), at least K. A larger number finds more of the
            true neighbours and is slower. Default: 200.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        construction: int | None = None,
        search: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("hnsw", locals())


class NearestLinker(Options):
    """The K nearest keys by distance, exactly.

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        metric: Measure of the distance between keys. Default: "euclidean".
        units: Difference in each key column that counts as a distance of 1, so that columns with other ranges have an
            equal importance; empty for 1 in every column. It must be empty, or a number above 0 for each key column.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        metric: Literal["euclidean", "haversine"] | None = None,
        units: Sequence[float] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("nearest", locals())


class NoisyLinker(Options):
    """Another linker with noise on its similarities (FedSim).

    Args:
        leak: Largest probability τ that an attacker recovers a bit vector from the similarities; 1 for no noise
            (FedSim; Wu, Li, He 2022, theorem 1). Default: 0.1.
        inner: Linker whose similarities get noise. It must have similarities.
    """

    def __init__(
        self,
        *,
        leak: float | None = None,
        inner: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("noisy", locals())


class PosteriorLinker(Options):
    """Another linker, with the probability that each neighbour is the right record.

    Args:
        noise: Standard deviation s of the error of a key's column, in the unit of the inner linker's similarities. With
            0, s is estimated from the run's links, also for predictions (from the links of each release if records are
            drawn again for each release). Default: 0.0.
        one_to_one: True if a record is the right record of at most one row. Default: true.
        similarity: The similarity of a neighbour. `fet-pool` weights neighbours equally with both. Default:
            "probability".
        inner: Linker that finds the neighbours. It must have similarities.
    """

    def __init__(
        self,
        *,
        noise: float | None = None,
        one_to_one: bool | None = None,
        similarity: Literal["probability", "likelihood"] | None = None,
        inner: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("posterior", locals())


class PsiLinker(Options):
    """Records with an equal key, by private set intersection.

    Args:
        neighbours: Number K of records that are linked to each primary record. Records without an equal key are drawn
            at random. Default: 1.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        missing: Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
            Default: [].
        compare: Comparison of text keys: unchanged, in normal form, or as the primary's cells of each column determine.
            In the last case, the secondary learns the comparison of each column. Default: "auto".
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        missing: Sequence[str] | None = None,
        compare: Literal["auto", "verbatim", "normal"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("psi", locals())


class RandomLinker(Options):
    """K records drawn at random.

    Args:
        neighbours: Number K of records that are drawn for each primary record. Default: 20.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("random", locals())


class RotationLinker(Options):
    """The K nearest keys under a secret rotation and scale.

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        secret_env: Environment variable with the parties' shared secret of at least 16 bytes. Empty in a simulation,
            where the seed determines the secret. It must be the name of an environment variable, or empty. Default: "".
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        secret_env: str | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("rotation", locals())


class TfidfLinker(Options):
    """Texts compared in the clear by tf-idf of character n-grams.

    Args:
        neighbours: Number K of records that are linked to each primary record. Default: 20.
        pad: True if a party with fewer than K records repeats its records up to K (repeats are masked out). If false,
            the linker refuses such a party. Default: false.
        missing: Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
            Default: [].
        shortest: Length of the shortest n-grams of a word, in characters, including a blank on either side. Default: 2.
        longest: Length of the longest n-grams of a word. It must be at least `shortest`. Default: 4.
    """

    def __init__(
        self,
        *,
        neighbours: int | None = None,
        pad: bool | None = None,
        missing: Sequence[str] | None = None,
        shortest: int | None = None,
        longest: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("tfidf", locals())


class Top1Linker(Options):
    """Only the nearest key.

    Args:
        metric: Measure of the distance between keys. Default: "euclidean".
    """

    def __init__(
        self,
        *,
        metric: Literal["euclidean", "haversine"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("top1", locals())


class Local(Options):
    """Table `local`.

    Args:
        hidden: The widths of the hidden layers of the primary's local model, in order; empty for none. The encoder slot
            defines the secondaries' local models.
        width: The width of every party's representation.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | None = None,
        width: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class Optimizer(Options):
    """Table `optimizer`.

    Args:
        kind: Update rule of the optimiser.
        learning_rate: Initial learning rate.
        weight_decay: Weight decay: added to the gradient as L2 for Adam, subtracted from the weights in proportion to
            the learning rate for AdamW, added to the update for LAMB; 0 for none.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Constant added to the denominator of an update.
    """

    def __init__(
        self,
        *,
        kind: Literal["adam", "adamw", "lamb"] | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        beta1: float | None = None,
        beta2: float | None = None,
        epsilon: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class FedsimMethod(Options):
    """Pairs of records weighed and sorted by similarity, which the parties reveal.

    Args:
        local: The parties' local models.
        pair_hidden: The widths of the hidden layers of the model that each pair of a record and a neighbour goes
            through, in order; empty for an affine model. Default: [100].
        pair_outputs: The output width of that model for each pair. Default: 10.
        weight_gate: If true, a learned gate turns a pair's similarity into its weight; otherwise the similarity itself
            is the weight. Default: true.
        gate_hidden: The width of the hidden layer of that gate. Default: 10.
        sort_gate: If true, the pairs of a record are sorted by ascending similarity before the merge. Default: true.
        merge: The merge of a record's pairs into one prediction. Default: "conv".
        conv_channels: The number of channels of the convolution over the pairs, if `merge` is "conv". Default: 8.
        conv_kernel: The kernel size of that convolution, in pairs. Default: 7.
        conv_hidden: The widths of the hidden layers after the convolution, in order; empty for none. Default: [400].
        mlp_hidden: The widths of the hidden layers if `merge` is "mlp", in order; empty for none. Default: [1600, 1000,
            400].
        dropout: The dropout rate before each layer of the merge; 0 for none. Default: 0.3.
        soft_party: The number of the secondary with K soft links; the first is 1. The others join by their nearest
            record. Default: 1.
        optimizer: The optimiser of the primary's model and of every secondary's.
    """

    def __init__(
        self,
        *,
        local: Local | None = None,
        pair_hidden: Sequence[int] | None = None,
        pair_outputs: int | None = None,
        weight_gate: bool | None = None,
        gate_hidden: int | None = None,
        sort_gate: bool | None = None,
        merge: Literal["conv", "mlp"] | None = None,
        conv_channels: int | None = None,
        conv_kernel: int | None = None,
        conv_hidden: Sequence[int] | None = None,
        mlp_hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        soft_party: int | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("fedsim", locals())


class FetMethod(Options):
    """The Federated Transformer.

    Args:
        hidden: H, the width of every representation. It must be a multiple of `heads` and even with a positional
            encoding. Default: 100.
        heads: Number of attention heads in every block. Default: 4.
        agg_blocks: Number of blocks of the primary's decoder. Default: 1.
        dropout: Dropout rate within blocks; 0 for none. Default: 0.3.
        party_dropout: Share of secondaries that each training step leaves out (party dropout); 0 for none. Default:
            0.0.
        positional_encoding: True if keys get a positional encoding of learnable Fourier features (paper, section 4.2).
            Default: true.
        frequency_std: Standard deviation of the initial frequencies of the positional encoding (the authors' program:
            400). Default: 20.0.
        pe_average_every: Interval, in epochs, at which the parameters of all parties' positional encodings are
            averaged; 0 for never. It must be 0 without a positional encoding. Default: 0.
        shared_norm: True if the blocks of a model share their layer norms, as in the authors' program; otherwise each
            block has its own. Default: false.
        optimizer: Optimiser of the primary's model and of every secondary's model.
    """

    def __init__(
        self,
        *,
        hidden: int | None = None,
        heads: int | None = None,
        agg_blocks: int | None = None,
        dropout: float | None = None,
        party_dropout: float | None = None,
        positional_encoding: bool | None = None,
        frequency_std: float | None = None,
        pe_average_every: int | None = None,
        shared_norm: bool | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("fet", locals())


class FetAloneMethod(Options):
    """The decoder of `fet` without other parties.

    Args:
        hidden: H, the width of every representation. It must be a multiple of `heads` and even with a positional
            encoding. Default: 100.
        heads: Number of attention heads in every block. Default: 4.
        agg_blocks: Number of blocks of the primary's decoder. Default: 1.
        dropout: Dropout rate within blocks; 0 for none. Default: 0.3.
        party_dropout: Share of secondaries that each training step leaves out (party dropout); 0 for none. Default:
            0.0.
        positional_encoding: True if keys get a positional encoding of learnable Fourier features (paper, section 4.2).
            Default: true.
        frequency_std: Standard deviation of the initial frequencies of the positional encoding (the authors' program:
            400). Default: 20.0.
        pe_average_every: Interval, in epochs, at which the parameters of all parties' positional encodings are
            averaged; 0 for never. It must be 0 without a positional encoding. Default: 0.
        shared_norm: True if the blocks of a model share their layer norms, as in the authors' program; otherwise each
            block has its own. Default: false.
        optimizer: Optimiser of the primary's model and of every secondary's model.
    """

    def __init__(
        self,
        *,
        hidden: int | None = None,
        heads: int | None = None,
        agg_blocks: int | None = None,
        dropout: float | None = None,
        party_dropout: float | None = None,
        positional_encoding: bool | None = None,
        frequency_std: float | None = None,
        pe_average_every: int | None = None,
        shared_norm: bool | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("fet-alone", locals())


class Grid(Options):
    """Table `grid`.

    Args:
        width: Width of the vectors of a grid; 0 for no grids.
        levels: Number of grids; each halves the cell size of the one before.
        coarsest: Side of the first grid's cells, in the unit of the models' keys: standard deviations if keys are
            standardised.
        places: Number of vectors of a grid, rounded up to a power of two: corners of fine grids share vectors by a
            hash.
    """

    def __init__(
        self,
        *,
        width: int | None = None,
        levels: int | None = None,
        coarsest: float | None = None,
        places: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class KeyEncoding(Options):
    """Table `key_encoding`.

    Args:
        width: Width of learnable Fourier features of the key as additional inputs (as in `fet`; paper, section 4.2); 0
            for none, as in the paper. It must be even.
        frequency_std: Standard deviation of the initial frequencies of the Fourier features.
        grid: Learned grids over the key, only in the primary's model.
    """

    def __init__(
        self,
        *,
        width: int | None = None,
        frequency_std: float | None = None,
        grid: Grid | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class NumberEncoding(Options):
    """Table `number_encoding`.

    Args:
        width: Number of additional inputs for each column; 0 for no encoding.
        frequencies: Number of learned frequencies of each column.
        frequency_std: Standard deviation of the initial frequencies, in cycles for each standard deviation of a column.
    """

    def __init__(
        self,
        *,
        width: int | None = None,
        frequencies: int | None = None,
        frequency_std: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class FetPoolMethod(Options):
    """One vector of each party for a row.

    Args:
        others: True if the primary queries the other parties. With false, the method is its own control variant: the
            difference is the contribution of the other parties. Default: true.
        width: Width of a party's answer. It must be even if keys are encoded. Default: 32.
        hidden: Widths of the hidden layers, in order, through which the primary's own record passes. Default: [256,
            256].
        joint: Width of the hidden layer that sees both the primary's own record and the other parties' answer; with 0,
            the answer is only added. Default: 128.
        clip: Soft bound on the absolute value of the inputs of the primary's model (Holzmüller et al. 2024); 0 for no
            bound. Default: 3.0.
        dropout: Dropout rate after each hidden layer, of every party; 0 for none. Default: 0.0.
        party_dropout: Share of secondaries that each training step leaves out (party dropout); 0 for none. Default:
            0.0.
        sharpness: Factor on similarities before the softmax that weights a row's neighbours: 1 for probabilities of the
            linker `posterior`, 0 for the plain mean. Default: 1.0.
        similarity_inputs: True if a party's answer also follows from the similarities of a row's neighbours, such as
            the distance to the nearest record. Default: false.
        key_encoding: Encoding of the primary's own key. Its `width` also applies to every secondary's own keys.
        number_encoding: Encoding of the primary's own columns. `encoder.number_encoding` encodes those of the
            secondaries.
        optimizer: Optimiser of the primary's model and of every secondary's model.
    """

    def __init__(
        self,
        *,
        others: bool | None = None,
        width: int | None = None,
        hidden: Sequence[int] | None = None,
        joint: int | None = None,
        clip: float | None = None,
        dropout: float | None = None,
        party_dropout: float | None = None,
        sharpness: float | None = None,
        similarity_inputs: bool | None = None,
        key_encoding: KeyEncoding | None = None,
        number_encoding: NumberEncoding | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("fet-pool", locals())


class Growth(Options):
    """Table `growth`.

    Args:
        trees: The number of trees; with several classes, of each class.
        learning_rate: The learning rate (shrinkage), a factor on each tree's output.
        leaves: The largest number of leaves of a tree.
        depth: The largest number of splits between the root of a tree and a leaf.
        leaf_weight: The smallest sum of second derivatives of the loss in a leaf: for a squared loss, the smallest
            number of rows. For classes a twentieth of it applies.
        row_share: The share of the training rows, drawn by seed, that each tree is grown on.
        column_share: The share of the columns, drawn by seed, that each tree is grown on.
    """

    def __init__(
        self,
        *,
        trees: int | None = None,
        learning_rate: float | None = None,
        leaves: int | None = None,
        depth: int | None = None,
        leaf_weight: float | None = None,
        row_share: float | None = None,
        column_share: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__(None, locals())


class FetTreesMethod(Options):
    """Boosted trees of all parties.

    Args:
        others: True if the primary queries the other parties. With false, the method is its own control variant: the
            difference is the contribution of the other parties. Default: true.
        proposals: Number of trees that each other party grows in a step. With fewer than the number of classes, the
            classes take turns. Default: 4.
        proposal_leaves: The largest number of leaves of another party's tree. Default: 16.
        proposal_rows: The share of the training rows that each tree of another party is grown on, drawn for each tree.
            With a lower share the trees fit less noise, because the primary's trees see their outputs for the other
            rows. Default: 0.4.
        columns: The forms of another party's K linked records as columns of its trees. It must be a list of at least
            one form, each named once. Default: ["nearest", "weighted", "similarity"].
        growth: The growth of the primary's trees, one in each step and for each class. The share of columns, the depth
            and the weight of a leaf apply to the other parties' trees, too.
    """

    def __init__(
        self,
        *,
        others: bool | None = None,
        proposals: int | None = None,
        proposal_leaves: int | None = None,
        proposal_rows: float | None = None,
        columns: Sequence[Literal["nearest", "mean", "weighted", "similarity"]] | None = None,
        growth: Growth | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("fet-trees", locals())


class GbdtPooledMethod(Options):
    """Gradient-boosted trees on columns pooled over the K records.

    Args:
        columns: The form in which the trees see the K linked records of each secondary. It must be a list of at least
            one form, each named once. Default: ["nearest", "mean", "weighted", "similarity"].
        growth: The growth of the trees.
    """

    def __init__(
        self,
        *,
        columns: Sequence[Literal["nearest", "mean", "weighted", "similarity"]] | None = None,
        growth: Growth | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gbdt-pooled", locals())


class GbdtSoloMethod(Options):
    """Gradient-boosted trees on the primary's own columns.

    Args:
        trees: The number of trees; with several classes, of each class. Default: 2000.
        learning_rate: The learning rate (shrinkage), a factor on each tree's output. Default: 0.05.
        leaves: The largest number of leaves of a tree. Default: 127.
        depth: The largest number of splits between the root of a tree and a leaf. Default: 64.
        leaf_weight: The smallest sum of second derivatives of the loss in a leaf: for a squared loss, the smallest
            number of rows. For classes a twentieth of it applies. Default: 10.0.
        row_share: The share of the training rows, drawn by seed, that each tree is grown on. Default: 0.8.
        column_share: The share of the columns, drawn by seed, that each tree is grown on. Default: 0.5.
    """

    def __init__(
        self,
        *,
        trees: int | None = None,
        learning_rate: float | None = None,
        leaves: int | None = None,
        depth: int | None = None,
        leaf_weight: float | None = None,
        row_share: float | None = None,
        column_share: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gbdt-solo", locals())


class GbdtTop1Method(Options):
    """Gradient-boosted trees on columns pooled by nearest record.

    Args:
        trees: The number of trees; with several classes, of each class. Default: 2000.
        learning_rate: The learning rate (shrinkage), a factor on each tree's output. Default: 0.05.
        leaves: The largest number of leaves of a tree. Default: 127.
        depth: The largest number of splits between the root of a tree and a leaf. Default: 64.
        leaf_weight: The smallest sum of second derivatives of the loss in a leaf: for a squared loss, the smallest
            number of rows. For classes a twentieth of it applies. Default: 10.0.
        row_share: The share of the training rows, drawn by seed, that each tree is grown on. Default: 0.8.
        column_share: The share of the columns, drawn by seed, that each tree is grown on. Default: 0.5.
    """

    def __init__(
        self,
        *,
        trees: int | None = None,
        learning_rate: float | None = None,
        leaves: int | None = None,
        depth: int | None = None,
        leaf_weight: float | None = None,
        row_share: float | None = None,
        column_share: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gbdt-top1", locals())


class LinearSoloMethod(Options):
    """Linear or logistic regression on the primary's own columns.

    Args:
        strongest: The strongest penalty; the weights are then close to 0. Default: 10.0.
        weakest: The weakest penalty; the weights are then close to those without a penalty. Default: 1e-05.
    """

    def __init__(
        self,
        *,
        strongest: float | None = None,
        weakest: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("linear-solo", locals())


class LinearTop1Method(Options):
    """Linear or logistic regression on columns pooled by nearest record.

    Args:
        strongest: The strongest penalty; the weights are then close to 0. Default: 10.0.
        weakest: The weakest penalty; the weights are then close to those without a penalty. Default: 1e-05.
    """

    def __init__(
        self,
        *,
        strongest: float | None = None,
        weakest: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("linear-top1", locals())


class SoloMethod(Options):
    """The primary party alone, a multi-layer perceptron.

    Args:
        hidden: The widths of the perceptron's hidden layers, in order; empty for an affine model. Default: [400, 400].
        dropout: The dropout rate after each hidden layer; 0 for none. Default: 0.0.
        key_encoding: The encoding of the key as additional input; none in the paper.
        optimizer: The optimiser of the model.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        key_encoding: KeyEncoding | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("solo", locals())


class Top1simMethod(Options):
    """The nearest record of each party, joined (SplitNN).

    Args:
        local: The parties' local models.
        hidden: The widths of the hidden layers of the primary's model on the joined representations, in order; empty
            for an affine model. Default: [100].
        dropout: The dropout rate after each hidden layer; 0 for none. Default: 0.0.
        key_encoding: The encoding of each party's own keys as input of its local model; none in the paper.
        optimizer: The optimiser of the primary's model and of every secondary's.
    """

    def __init__(
        self,
        *,
        local: Local | None = None,
        hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        key_encoding: KeyEncoding | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("top1sim", locals())


class WithLinearMethod(Options):
    """Another method, averaged with linear or logistic regression on the primary's own columns.

    Args:
        inner: The other method.
        share: The share of the linear model in a prediction: a number, or "fitted" for the share that fits the
            validation rows best, after every epoch. Few validation rows leave the share near one half. The validation
            rows then choose the epoch and the share, so that their scores are slightly too good; the test rows take no
            part. Default: 0.5.
        penalty: The penalty on the squared weights of standardised columns, as in `linear-solo`. Default: 0.001.
    """

    def __init__(
        self,
        *,
        inner: Mapping[str, Any] | None = None,
        share: Literal["fitted"] | float | None = None,
        penalty: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("with-linear", locals())


class WithTreesMethod(Options):
    """Another method, averaged with boosted trees on the primary's own columns.

    Args:
        inner: The other method.
        share: The share of the trees in a prediction: a number, or "fitted" for the share and the number of trees, in
            steps of a twentieth, that fit the validation rows best, after every epoch. Few validation rows leave the
            share near one half. The validation rows then choose the epoch, the share and the number, so that their
            scores are slightly too good; the test rows take no part. Default: 0.5.
        growth: The growth of the trees.
    """

    def __init__(
        self,
        *,
        inner: Mapping[str, Any] | None = None,
        share: Literal["fitted"] | float | None = None,
        growth: Growth | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("with-trees", locals())


class MlpEncoder(Options):
    """A multi-layer perceptron on each neighbour separately.

    Args:
        hidden: Widths of the perceptron's hidden layers, in order; empty for an affine model. Default: [200].
        number_encoding: Encoding of the columns, next to their values.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | None = None,
        number_encoding: NumberEncoding | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("mlp", locals())


class TransformerEncoder(Options):
    """Self-attention over the neighbours, with a learned mask.

    Args:
        blocks: Number of pre-norm blocks of self-attention over the K neighbours. Default: 1.
        dynamic_mask: True if a learned mask, computed from the neighbours' keys, weights the links (paper, section
            4.3). Default: true.
    """

    def __init__(
        self,
        *,
        blocks: int | None = None,
        dynamic_mask: bool | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("transformer", locals())


class AverageAggregator(Options):
    """The mean of the active parties, in the clear.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("average", locals())


class ConcatAggregator(Options):
    """All parties concatenated, in the clear (SplitNN).
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("concat", locals())


class SecureAverageAggregator(Options):
    """The mean of the active parties.

    Args:
        bits: Width of the summed integers, in bits: masks and sums are taken modulo 2^bits. Default: 32.
        range: Largest absolute value in a representation without a mechanism that clips; a larger value ends the run.
            Default: 64.0.
        degree: Number of other parties that each party shares masks with, rounded up to an even number. With 1, parties
            hide from each other only in pairs. Default: 8.
    """

    def __init__(
        self,
        *,
        bits: int | None = None,
        range: float | None = None,
        degree: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("secure-average", locals())


class SimilarityWeightedAggregator(Options):
    """A mean weighted by the neighbours' similarities, which the parties reveal.

    Args:
        sharpness: Factor on standardised similarities before the softmax over parties. A larger factor gives the
            nearest party more weight; 0 gives the plain mean. Default: 1.0.
    """

    def __init__(
        self,
        *,
        sharpness: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("similarity-weighted", locals())


class SumAggregator(Options):
    """The sum of the active parties, in the clear.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("sum", locals())


class DiscreteGaussianPrivacy(Options):
    """Clipping and integer noise, with a proved guarantee.

    Args:
        clip: C, the maximum L2 norm of one row's clipped block, summed over the parties: each of |A| parties clips its
            own block to C/|A|. Default: 1.0.
        noise: σ, the noise multiplier: the noise on the sum has the standard deviation σ·C. Computed from
            `target_epsilon` unless that is 0. Default: 4.0.
        target_epsilon: Target ε of the whole run, which determines σ; with 0, `noise` is σ. It must be at least 0.001
            unless it is 0. Default: 0.0.
        delta: δ, the probability that the bound ε fails: well below one divided by the number of records. Default:
            1e-05.
        neighbouring: Neighbouring relation: the pairs of data sets that ε makes indistinguishable. Default: "replace".
        learning: Treatment of the secondaries' models, which learn from the protected records, in ε. Default:
            "counted".
        sample_rate: q, the probability that a secondary uses a record in a release, drawn independently for each record
            and release; 1 uses all records. Default: 1.0.
        amplification: True if ε takes the sampling of records by `sample_rate` into account (amplification by
            subsampling). Default: false.
        max_occurrences: Maximum number of rows of a release for which one record may be a neighbour; 0 for no limit.
            Default: 0.
        colluding: t, the number of secondaries that may collude with the primary; the noise of the other secondaries
            must suffice for ε. 0 for none. Default: 0.
    """

    def __init__(
        self,
        *,
        clip: float | None = None,
        noise: float | None = None,
        target_epsilon: float | None = None,
        delta: float | None = None,
        neighbouring: Literal["replace", "add-remove", "record"] | None = None,
        learning: Literal["counted", "assumed", "frozen"] | None = None,
        sample_rate: float | None = None,
        amplification: bool | None = None,
        max_occurrences: int | None = None,
        colluding: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("discrete-gaussian", locals())


class GaussianPrivacy(Options):
    """Clipping and noise in floats.

    Args:
        clip: C, the maximum L2 norm of one row's clipped block, summed over the parties: each of |A| parties clips its
            own block to C/|A|. Default: 1.0.
        noise: σ, the noise multiplier: the noise on the sum has the standard deviation σ·C. Computed from
            `target_epsilon` unless that is 0. Default: 4.0.
        target_epsilon: Target ε of the whole run, which determines σ; with 0, `noise` is σ. It must be at least 0.001
            unless it is 0. Default: 0.0.
        delta: δ, the probability that the bound ε fails: well below one divided by the number of records. Default:
            1e-05.
        neighbouring: Neighbouring relation: the pairs of data sets that ε makes indistinguishable. Default: "replace".
        learning: Treatment of the secondaries' models, which learn from the protected records, in ε. Default:
            "counted".
        sample_rate: q, the probability that a secondary uses a record in a release, drawn independently for each record
            and release; 1 uses all records. Default: 1.0.
        amplification: True if ε takes the sampling of records by `sample_rate` into account (amplification by
            subsampling). Default: false.
        max_occurrences: Maximum number of rows of a release for which one record may be a neighbour; 0 for no limit.
            Default: 0.
        colluding: t, the number of secondaries that may collude with the primary; the noise of the other secondaries
            must suffice for ε. 0 for none. Default: 0.
    """

    def __init__(
        self,
        *,
        clip: float | None = None,
        noise: float | None = None,
        target_epsilon: float | None = None,
        delta: float | None = None,
        neighbouring: Literal["replace", "add-remove", "record"] | None = None,
        learning: Literal["counted", "assumed", "frozen"] | None = None,
        sample_rate: float | None = None,
        amplification: bool | None = None,
        max_occurrences: int | None = None,
        colluding: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gaussian", locals())


class NonePrivacy(Options):
    """No clipping, no noise, no guarantee.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("none", locals())


class RecordCodeRelease(Options):
    """A symbol of the one record that belongs to each of the primary's keys, released once by randomised response.

    Args:
        columns: Number columns that determine a record's symbol, by secondary, each with its range from public
            knowledge, as in `columns.laboratory = { creatinine = [0, 5] }`. The name "*" means all other secondaries,
            or all other number columns. A value outside counts as the end of the range, a missing value as the middle.
            It must be tables of ranges [low, high], by secondary.
        epsilon: ε of each secondary's release, the means included. Default: 3.0.
        delta: δ, the probability that the bound ε fails: well below one divided by the number of records. Default:
            1e-05.
        neighbouring: Neighbouring relation of a secondary's tables, which must be indistinguishable. Default: "add-
            remove".
        means_share: The share of ε for the means of the labels' records, which determine a record's symbol: the label
            with the nearest mean. Default: 0.2.
        bins: Number of symbols for a regression: bins with equal numbers of training labels. With classes, each class
            has a symbol. With more symbols than about e to the power of ε, few symbols are true: the report has the
            probability. Default: 8.
        noise_only: True to release symbols without any record: the control that shows the gain from random symbols.
            Default: false.
    """

    def __init__(
        self,
        *,
        columns: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbouring: Literal["add-remove", "record", "features"] | None = None,
        means_share: float | None = None,
        bins: int | None = None,
        noise_only: bool | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("record-code", locals())


class SurfaceRelease(Options):
    """Noisy counts and sums of columns over cells of an area, released once.

    Args:
        area: Range of each key column, in the order of the keys, from public knowledge and never from any party's
            records. Records outside are left out; a primary's row outside has the values of the edge. With four ranges,
            such as the start and the end of a trip, set `finest` to 16: the finest level has at most 65,536 cells. A
            date counts as the number of days since 1970. It must be 1 to 8 ranges [low, high]. Default: [].
        columns: Number columns to release, by secondary, each with its range from public knowledge, as in
            `columns.weather = { temp = [-20, 120] }`. A value outside counts as the end of the range, a missing value
            as the middle. A secondary without an entry releases counts only. It must be tables of ranges [low, high],
            by secondary.
        epsilon: ε of each secondary's release. Default: 1.0.
        delta: δ, the probability that the bound ε fails: well below one divided by the number of records. Default:
            1e-05.
        neighbouring: Neighbouring relation of a secondary's tables, which must be indistinguishable. Default: "record".
        coarsest: Number of cells a side of the coarsest level. Default: 4.
        finest: Number of cells a side of the finest level: `coarsest` times 1, 2, 4, 8 or a higher power of two.
            Default: 64.
        noise_only: True to release the noise alone, without any record: the control that shows the gain from random
            numbers for each place. Default: false.
    """

    def __init__(
        self,
        *,
        area: Sequence[Sequence[float]] | None = None,
        columns: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbouring: Literal["record", "add-remove"] | None = None,
        coarsest: int | None = None,
        finest: int | None = None,
        noise_only: bool | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("surface", locals())


class CompressedGradientsLabels(Options):
    """Only the largest values of each row's gradient are sent.

    Args:
        share: Share of the values of a row's gradient that are sent, the largest first; at least one value is sent.
            Default: 0.1.
    """

    def __init__(
        self,
        *,
        share: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("compressed-gradients", locals())


class LaplaceLabels(Options):
    """For numbers.

    Args:
        epsilon: ε, the privacy loss of one training label over the whole run. Default: 1.0.
        low: Smallest label, in its own unit, from knowledge other than the training labels; a smaller label is clipped
            to it. It must be below `high`. Default: 0.0.
        high: Largest label, in its own unit, from knowledge other than the training labels; a larger label is clipped
            to it. It must be above `low`. Default: 1.0.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("laplace", locals())


class MaxNormLabels(Options):
    """Each row's gradient gets noise along itself, up to the largest norm of the batch.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("max-norm", locals())


class NoisyGradientsLabels(Options):
    """The gradient of each row is clipped and gets noise before it is sent.

    Args:
        clip: C, the maximum L2 norm of a row's clipped gradient: the gradient of the row's own loss with respect to the
            memory. Default: 0.1.
        noise: σ, the noise multiplier: each value gets Gaussian noise with the standard deviation σ·C. Computed from
            `target_epsilon` unless that is 0. Default: 4.0.
        target_epsilon: Target ε of the whole run, which determines σ; with 0, `noise` is σ. It must be at least 0.001
            unless it is 0. Default: 0.0.
        delta: δ, the probability that the bound ε fails: well below one divided by the number of training rows.
            Default: 1e-05.
        learning: Treatment of the primary's model, which learns from the protected labels, in ε. Default: "counted".
    """

    def __init__(
        self,
        *,
        clip: float | None = None,
        noise: float | None = None,
        target_epsilon: float | None = None,
        delta: float | None = None,
        learning: Literal["counted", "assumed"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("noisy-gradients", locals())


class NoneLabels(Options):
    """Labels are not protected.
    """

    def __init__(self) -> None:
        """Keep the settings that are given."""
        super().__init__("none", locals())


class RandomisedResponseLabels(Options):
    """For classes.

    Args:
        epsilon: ε, the privacy loss of one training label over the whole run. Default: 1.0.
        prior: Probability of each class, from knowledge other than the training labels; empty if all classes are
            equally likely (Ghazi et al. 2021, algorithm 2). It must be empty, or at least two probabilities that add up
            to 1. Default: [].
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        prior: Sequence[float] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("randomised-response", locals())


class BackdoorAttack(Options):
    """A trigger in a secondary's records that makes the model predict a class.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        class_: Target class of rows with the trigger; the first class is 0. Default: 0.
        known: Number of training rows known to be of the target class; their records get the trigger. Default: 20.
        targets: Number of test rows of other classes that get the trigger. Default: 20.
        boost: Factor by which the attacker multiplies its learning rate, so that the model relies on its part; 1
            follows the protocol. Default: 5.0.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        class_: int | None = None,
        known: int | None = None,
        targets: int | None = None,
        boost: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("backdoor", locals())


class FaultyPartyAttack(Options):
    """A secondary that fails after training.

    Args:
        party: Number of the failing secondary, from 1. Default: 1.
        fault: Fault of the secondary after training. Default: "missing".
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        fault: Literal["missing", "mixed"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("faulty-party", locals())


class GradientClusteringAttack(Options):
    """Labels from clusters of gradients.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        epochs: Number of first epochs whose gradients the attacker uses. Default: 1.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        epochs: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-clustering", locals())


class GradientCosineAttack(Options):
    """Pairs of rows with the same label, from the angles of gradients.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        epochs: Number of first epochs whose gradients the attacker uses. Default: 1.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        epochs: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-cosine", locals())


class GradientNeighbourAttack(Options):
    """Labels from the gradients of a few rows whose labels are known.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        known: Number of known labels of each class. Default: 1.
        epochs: Number of first epochs whose gradients the attacker uses. Default: 1.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        known: int | None = None,
        epochs: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-neighbour", locals())


class GradientNormAttack(Options):
    """Labels from the norms of gradients.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-norm", locals())


class GradientReconstructionAttack(Options):
    """Another party's features from the gradients that a secondary receives.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        target: Number of the attacked secondary, from 1; 0 for the primary. Default: 0.
        known: Share of training rows for which the attacker knows the other party's features. Default: 0.5.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        target: int | None = None,
        known: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-reconstruction", locals())


class GradientSignAttack(Options):
    """Large labels, from the side of gradients.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("gradient-sign", locals())


class LinkageAttack(Options):
    """Links to close records, from the messages to the primary.

    Args:
        party: Number of the attacked secondary, from 1. Default: 1.
        known: Share of training rows for which the attacker knows the similarity of the nearest record. Default: 0.5.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        known: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("linkage", locals())


class MembershipAttack(Options):
    """Membership of a record in a secondary's table, by likelihood ratios from shadow runs.

    Args:
        party: Number of the attacked secondary, from 1. Default: 1.
        shadows: Number of shadow runs; each attacked record is in half of them. It must be an even number. Default: 8.
        targets: Maximum number of attacked records. Default: 400.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        shadows: int | None = None,
        targets: int | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("membership", locals())


class ModelCompletionAttack(Options):
    """Labels from the party's own half of the model and a few known labels.

    Args:
        party: Number of the attacking secondary, from 1. Default: 1.
        known: Number of known labels of each class. Default: 4.
        boost: Factor by which the attacker multiplies its learning rate, so that the primary's half relies on the
            attacker's half (active model completion; Fu et al. 2022, section 4.2); 1 follows the protocol. Default:
            1.0.
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        known: int | None = None,
        boost: float | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("model-completion", locals())


class ReconstructionAttack(Options):
    """A secondary's features from all that the primary receives, given some of them.

    Args:
        party: Number of the attacked secondary, from 1. Default: 1.
        known: Share of training rows whose features the attacker knows. Default: 0.5.
        model: Decoder that predicts features from the messages to the primary. Default: "ridge".
    """

    def __init__(
        self,
        *,
        party: int | None = None,
        known: float | None = None,
        model: Literal["ridge", "network"] | None = None,
    ) -> None:
        """Keep the settings that are given."""
        super().__init__("reconstruction", locals())
