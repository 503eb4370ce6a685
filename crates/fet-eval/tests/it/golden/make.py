"""Golden figures of the metrics, from scikit-learn.

    python -m venv /tmp/skl && /tmp/skl/bin/pip install scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
    /tmp/skl/bin/python make.py

writes golden.json beside itself; it is the same bytes each time. `null` is what this project calls undefined (see
`Metric`): there scikit-learn warns and gives NaN, 0, or a figure that one row decides. Where a row weighs nothing,
scikit-learn is given the rows without it. The expected calibration error is not in scikit-learn: it is computed here
with numpy.digitize, and once more from sklearn's own calibration_curve where that can say it.
"""

import json
import pathlib
import platform
import warnings

import numpy as np
import scipy
import scipy.stats
import sklearn
from sklearn import metrics as m
from sklearn.calibration import calibration_curve
from sklearn.preprocessing import label_binarize
from sklearn.utils.class_weight import compute_class_weight

warnings.simplefilter("ignore")
rng = np.random.default_rng(20240607)
PARTS = 256  # probabilities are multiples of 1/256, so that they tie, sum to 1 exactly and are short


def ece(confidence, hit, w, bins=15):
    inner = np.arange(1, bins) / bins
    place = np.digitize(confidence, inner, right=True)
    return sum(
        abs((w * hit)[place == b].sum() - (w * confidence)[place == b].sum()) for b in range(bins)
    ) / w.sum()


def weights(kind, n):
    if kind == 0:
        return None
    if kind == 1:
        return rng.integers(1, 5, n).astype(float)
    w = np.round(rng.uniform(0, 3, n), 2)
    w[rng.random(n) < 0.2] = 0
    w[rng.integers(n)] = 1.25
    return w


def kept(w, *columns):
    """The columns without the rows that weigh nothing."""
    return columns if w is None else tuple(c[w > 0] for c in columns)


def regression(i):
    n = int(rng.integers(1, 25))
    y = np.round(rng.normal(3, 5, n), int(rng.integers(0, 3)))
    p = np.round(y + rng.normal(0, 2, n), 2)
    if i % 10 == 1:
        p = y.copy()
    if i % 10 == 2:
        p = np.full(n, 2.5)
    if i % 10 == 3:
        y = np.full(n, 0.1)  # constant truth
    if i % 20 == 3:
        p = y.copy()
    if i % 10 == 4:
        y = np.abs(y) + 1
    w = weights(i % 3, n)
    case = {"y": y.tolist(), "p": p.tolist()}
    if w is not None:
        case["w"] = w.tolist()
        y, p, w = kept(w, y, p, w)
    a = {"sample_weight": w}
    mean = np.average(np.abs(y), weights=w)
    constant = (y == y[0]).all()  # with 0.1 scikit-learn's own mean is off by a rounding: its rule, applied exactly
    case["rmse"] = m.root_mean_squared_error(y, p, **a)
    case["mae"] = m.mean_absolute_error(y, p, **a)
    case["r2"] = None if len(y) < 2 else float((y == p).all()) if constant else m.r2_score(y, p, **a)
    small = (np.abs(y) < 1e-6 * mean).any() or (y == 0).any()
    case["mape"] = None if small else m.mean_absolute_percentage_error(y, p, **a)
    case["median-absolute-error"] = float(m.median_absolute_error(y, p, **a))
    return case


def curves(y, p):
    out = {}
    for strategy in ("uniform", "quantile"):
        for bins in (3, 10):
            observed, predicted = calibration_curve(y, p, n_bins=bins, strategy=strategy, pos_label=1)
            out[f"{strategy}{bins}"] = [predicted.tolist(), observed.tolist()]
    return out


def common(case, y, guess, w, k):
    a = {"sample_weight": w}
    case["accuracy"] = m.accuracy_score(y, guess, **a)
    case["balanced-accuracy"] = m.balanced_accuracy_score(y, guess, **a)
    case["macro-f1"] = m.f1_score(y, guess, average="macro", zero_division=0, **a)
    case["confusion"] = m.confusion_matrix(y, guess, labels=range(k), **a).tolist()


def binary(i):
    n = int(rng.integers(1, 25))
    y = rng.integers(0, 2, n)
    sharp = [1, 4, 40][i % 3]
    parts = np.clip(np.round(PARTS * rng.beta(1 + sharp * y, 1 + sharp * (1 - y))), 0, PARTS).astype(int)
    if i % 4 == 0:
        parts = (parts // 64) * 64
    if i % 11 == 1:
        parts = PARTS * y
    if i % 11 == 2:
        parts = np.full(n, 77)
    if i % 11 == 3:
        y = np.full(n, i % 2)
    w = weights((i // 2) % 3, n)
    case = {"y": y.tolist(), "p": parts.tolist()}
    p = parts / PARTS
    if w is not None:
        case["w"] = w.tolist()
        y, p, w = kept(w, y, p, w)
    a = {"sample_weight": w}
    common(case, y, (p >= 0.5).astype(int), w, 2)
    case["auc-roc"] = m.roc_auc_score(y, p, **a) if len(set(y)) == 2 else None
    case["auc-pr"] = m.average_precision_score(y, p, **a) if y.any() else None
    case["log-loss"] = m.log_loss(y, p, labels=[0, 1], **a)
    case["brier"] = m.brier_score_loss(y, p, pos_label=1, **a)
    case["calibration-error"] = ece(p, y, np.ones(len(y)) if w is None else w)
    if w is None:
        case["curves"] = curves(y, p)
        observed, predicted = calibration_curve(y, p, n_bins=15, pos_label=1)
        if len(observed) == len(y):
            assert abs(case["calibration-error"] - np.abs(observed - predicted).mean()) < 1e-12
    return case


def multiclass(i):
    n, k = int(rng.integers(3, 22)), int(rng.integers(3, 6))
    y = rng.integers(0, k, n)
    if i % 3:
        y[:k] = np.arange(k)[:n]
    if i % 7 == 1:
        y[y == k - 1] = 0  # the last class is absent
    parts = np.array([rng.multinomial(PARTS, rng.dirichlet(np.where(np.arange(k) == c, 2.5, 0.7))) for c in y])
    if i % 4 == 0:
        parts = parts // 64 * 64
        parts[:, 0] += PARTS - parts.sum(1)
    if i % 11 == 2:
        parts = PARTS * (np.arange(k) == y[:, None])
    if i % 11 == 3:
        parts = np.tile(parts[0], (n, 1))
    w = weights((i // 2) % 3, n)
    case = {"k": k, "y": y.tolist(), "p": parts.ravel().tolist()}
    p = parts / PARTS
    if w is not None:
        case["w"] = w.tolist()
        y, p, w = kept(w, y, p, w)
    a = {"sample_weight": w}
    guess = p.argmax(1)
    common(case, y, guess, w, k)
    present = len(set(y)) == k
    hot = label_binarize(y, classes=range(k))
    ovr = {"multi_class": "ovr", "average": "macro", "labels": range(k)}
    case["auc-roc"] = m.roc_auc_score(y, p, **ovr, **a) if present else None
    case["auc-pr"] = m.average_precision_score(hot, p, average="macro", **a) if present else None
    case["log-loss"] = m.log_loss(y, p, labels=range(k), **a)
    case["brier"] = m.brier_score_loss(y, p, labels=range(k), **a)
    case["calibration-error"] = ece(p.max(1), guess == y, np.ones(len(y)) if w is None else w)
    return case


def class_weights(_):
    k = int(rng.integers(2, 6))
    y = np.concatenate([np.arange(k), rng.integers(0, k, int(rng.integers(0, 30)))])
    return {"k": k, "y": y.tolist(), "weights": compute_class_weight("balanced", classes=np.arange(k), y=y).tolist()}


def intervals():
    """scipy's BCa and percentile intervals of a mean absolute error; they have a Monte-Carlo error of their own."""
    e = np.round(rng.exponential(2, 40), 3)
    out = {"errors": e.tolist()}
    for method in ("percentile", "BCa"):
        r = scipy.stats.bootstrap(
            (e,), np.mean, n_resamples=200_000, batch=2_000, confidence_level=0.9, method=method, rng=np.random.default_rng(1)
        )
        out[method] = [r.confidence_interval.low, r.confidence_interval.high]
    return out


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, float) and x.is_integer():
        return int(x)
    return round(x, 13) if isinstance(x, float) else x  # 1e-13: the tests compare to 1e-9


def main():
    golden = {
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parts": PARTS,
        "regression": [regression(i) for i in range(150)],
        "binary": [binary(i) for i in range(180)],
        "multiclass": [multiclass(i) for i in range(180)],
        "class_weights": [class_weights(i) for i in range(15)],
        "bootstrap": intervals(),
    }
    text = json.dumps(plain(golden), separators=(",", ":"), allow_nan=False).replace('},{"', '},\n{"')
    pathlib.Path(__file__).with_name("golden.json").write_text(text + "\n")


main()
