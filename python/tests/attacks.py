"""Attacks for the tests of plug-ins: two that find what attacks of the program find, and others with a fault."""

from typing import Any

import numpy as np

import fet


def area(scores: Any, members: Any) -> float:
    """Return the area under the ROC curve; ties count half."""
    scores, members = np.asarray(scores, float), np.asarray(members, bool)
    inside, outside = int(members.sum()), int((~members).sum())
    if inside == 0 or outside == 0:
        return 0.5
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((ranks[places][members].sum() - inside * (inside + 1) / 2) / (inside * outside))


class Recorder:
    """Hook that records row, pass and norm of each gradient."""

    def __init__(self, boost: float = 1.0) -> None:
        self.boost = boost
        self.seen: dict[int, int] = {}
        self.found: list[tuple[int, int, float]] = []

    def gradient(self, message: Any) -> None:
        norms = np.sqrt((message.values.astype(float) ** 2).sum(axis=(1, 2)))
        for row, norm in zip(message.rows.tolist(), norms):
            time = self.seen.get(row, 0)
            self.found.append((row, time, norm))
            self.seen[row] = time + 1
        if self.boost != 1.0:
            message.learning_rate *= self.boost


@fet.attack
class GradientNorm:
    """Labels from the norms of gradients, as `gradient-norm`."""

    attacker = "secondary"
    target = "labels"

    def check(self, setting: Any) -> None:
        if setting.task == "regression":
            raise fet.InputError("this attack needs classes")

    def attack(self, environment: Any) -> Any:
        recorder = Recorder()
        environment.train(hook=recorder)
        found = np.array(recorder.found)
        labels = environment.tables.labels[found[:, 0].astype(int)]
        shuffled = np.random.default_rng(environment.setting.seed).permutation(labels)

        def most(labels: Any) -> float:
            best, rows = 0.5, (found[:, 1] == 0).sum()
            for time in range(int(found[:, 1].max()) + 1):
                now = found[:, 1] == time
                if 2 * now.sum() <= rows:
                    break
                areas = [area(found[now, 2], labels[now] == one) for one in range(environment.setting.classes)]
                best = max(best, float(np.mean([max(one, 1 - one) for one in areas])))
            return best

        return [fet.Measure("AUC of the norm, mean over classes", most(labels), most(shuffled))]


class Parts:
    """Observer that keeps the last part of the first party for each row, and the test's outputs."""

    def __init__(self) -> None:
        self.parts: dict[int, Any] = {}
        self.tested: dict[int, Any] = {}
        self.active: set[tuple[int, ...]] = set()

    def received(self, round: Any, rows: Any, active: Any, parts: Any) -> None:
        self.active.add(tuple(active))
        if round.kind == "train":
            self.parts.update(zip(rows.tolist(), parts[0].reshape(len(rows), -1)))

    def predicted(self, round: Any, rows: Any, outputs: Any) -> None:
        if round.kind == "test":
            self.tested.update(zip(rows.tolist(), outputs))


@fet.attack
class Reconstruction:
    """The features of half of the rows, from the parts that the primary receives, by least squares."""

    attacker = "primary"
    target = "features"

    def attack(self, environment: Any) -> Any:
        observer = Parts()
        run = environment.train(observer=observer)
        rows = run.train
        parts = np.stack([observer.parts[row] for row in rows.tolist()])
        truth = run.features(environment.party, rows)
        half = len(rows) // 2

        def error(inputs: Any) -> float:
            inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
            weights = np.linalg.lstsq(inputs[:half], truth[:half], rcond=1e-4)[0]
            missed = ((truth[half:] - inputs[half:] @ weights) ** 2).sum(axis=0)
            spread = ((truth[half:] - truth[:half].mean(axis=0)) ** 2).sum(axis=0)
            return float(min(1, np.median((missed / np.maximum(spread, 1e-9))[spread > 1e-9])))

        return fet.Measure("error of the median column", error(parts), error(run.own_columns(rows)), 0.0)


@fet.attack
class Probing:
    """Uses every part of the environment, and states what it saw."""

    attacker = "primary"
    target = "predictions"

    def attack(self, environment: Any) -> Any:
        tables, party = environment.tables, environment.party
        rows = np.arange(5)
        measures = [fet.Measure("parties", len(tables.features), 0)]

        def state(name: str, value: float) -> None:
            measures.append(fet.Measure(name, float(value), -1.0))

        untrained = environment.train(untrained=True)
        state("untrained metric", np.isnan(untrained.metric))
        before = untrained.encoded(party, rows)
        observer = Parts()
        run = environment.train(observer=observer)
        state("rows", len(run.train) + len(run.validation) + len(run.test))
        state("outputs", sorted(observer.tested) == sorted(run.test.tolist()))
        state("active", len(observer.active))
        state("learned", np.abs(run.encoded(party, rows) - before).max() > 1e-4)
        state("shown", len(run.shown(party, rows)[0]))
        state("similarity", np.isfinite(run.similarity(party, rows)).all())
        state("keys", run.keys(party, rows).shape == (5, tables.keys[party].shape[1]))
        state("own", run.own_columns(rows).shape[0])
        withheld = environment.train(withhold=True)
        state("withheld", np.abs(withheld.encoded(party, rows) - before).max() == 0)
        kept = np.arange(len(tables.keys[party]) - 40)
        fewer = environment.train(records={party: kept})
        state("fewer records", max(max(one) for one in fewer.shown(party, fewer.train)) < len(kept))
        zeros = np.zeros_like(tables.features[party])
        blank = environment.train(features={party: zeros})
        state("blank features", np.abs(blank.features(party, rows)).max() == 0)
        ended = environment.train(tested=(party, zeros))
        state("blank test", ended.metric != run.metric)
        wrong = environment.train(labels=np.roll(tables.labels, 1))
        state("other labels", wrong.metric != run.metric)
        del wrong
        return measures


@fet.attack
class Boost:
    """Changes messages: a larger learning rate, and a representation of zeros in the test."""

    attacker = "secondary"
    target = "predictions"

    def __init__(self, boost: float = 1.0, erase: bool = False) -> None:
        self.boost, self.erase = boost, erase

    def attack(self, environment: Any) -> Any:
        hook = Recorder(self.boost)
        if self.erase:

            def representation(message: Any) -> None:
                if message.round.kind == "test":
                    message.values[...] = 0

            hook.representation = representation  # type: ignore[attr-defined]
        return [fet.Measure("metric", environment.train(hook=hook).metric, 0.0)]


@fet.attack
class Careless(GradientNorm):
    """Breaks a law: the hook changes the gradient that it records."""

    def attack(self, environment: Any) -> Any:
        class Scaling(Recorder):
            def gradient(self, message: Any) -> None:
                message.values[...] = np.abs(message.values)
                super().gradient(message)

        hook = Scaling()
        environment.train(hook=hook)
        return [fet.Measure("mean norm", float(np.mean([norm for _, _, norm in hook.found])), 0.0)]


@fet.attack
class Random(GradientNorm):
    """Breaks a law: the figures do not repeat."""

    def attack(self, environment: Any) -> Any:
        (measure,) = super().attack(environment)
        return [measure._replace(value=measure.value + np.random.default_rng().random())]


class NestedHook:
    """Trains another run for each gradient."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment

    def gradient(self, message: Any) -> None:
        self.environment.train(untrained=True)


class FailingHook:
    """Fails at a gradient."""

    def gradient(self, message: Any) -> None:
        raise KeyError("the key of a person")


class ShorteningHook:
    """Leaves out rows of a representation."""

    def representation(self, message: Any) -> None:
        message.values = message.values[:1]


class FailingObserver:
    """Fails at the first representation."""

    def received(self, round: Any, rows: Any, active: Any, parts: Any) -> None:
        raise KeyError("the observer")


@fet.attack
class Faulty:
    """Has one fault."""

    target = "labels"

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.attacker = "nobody" if fault == "attacker" else "secondary"

    def attack(self, environment: Any) -> Any:
        faults: dict[str, Any] = {
            "none": lambda: None,
            "empty": lambda: [],
            "tuple": lambda: [("a", 1, 2, 3)],
            "nan": lambda: [fet.Measure("a", float("nan"), 0)],
            "exception": lambda: {}["the key of a person"],
            "hook": lambda: environment.train(hook=FailingHook()),
            "hook shape": lambda: environment.train(hook=ShorteningHook()),
            "observer": lambda: environment.train(observer=FailingObserver()),
            "party": lambda: environment.train(features={9: environment.tables.features[0]}),
            "shape": lambda: environment.train(labels=[1.0]),
            "rows": lambda: environment.train(untrained=True).features(1, [10**6]),
            "missing": lambda: environment.train(untrained=True).features(9, [0]),
            "again": lambda: self.keep_on(environment),
            "classes": lambda: environment.train(labels=environment.tables.labels + 50),
            "no method": lambda: environment.train(hook=object()),
            "train in a hook": lambda: environment.train(hook=NestedHook(environment)),
            "equal": lambda: [fet.Measure("a", 5.0, 1.0, 1.0)],
            "same name": lambda: [fet.Measure("a", 1.0, 0.0), fet.Measure("a", 1.0, 0.0)],
            "nested": lambda: fet.testing.check_attack(GradientNorm),
        }
        return faults[self.fault]()

    def keep_on(self, environment: Any) -> Any:
        """Continue after a failure of the program."""
        run = environment.train(untrained=True)
        try:
            run.features(9, [0])
        except Exception:
            return [fet.Measure("continued", 1.0, 0.0)]
        raise AssertionError


kept: list[Any] = []


@fet.attack
class Keeping(GradientNorm):
    """Keeps its environment and its run after the end."""

    def attack(self, environment: Any) -> Any:
        kept.extend([environment, environment.train(untrained=True)])
        return super().attack(environment)
