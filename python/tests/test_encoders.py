"""Tests of encoders in Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import encoders
import fet
from fet.settings import sets
from test_plugins import figures, within_a_minute


def trained(digits: Path, encoder: Any, epochs: int = 2, **changes: Any) -> fet.Run:
    settings = {"train.epochs": epochs, "encoder": encoder, **changes}
    run: fet.Run = within_a_minute(lambda: fet.run(digits, set=settings))
    return run


def test_an_encoder_in_numpy_learns_repeats_and_predicts(digits: Path) -> None:
    settings = fet.encoder_settings(encoders.Affine)
    first = trained(digits, settings, 6)
    losses = [epoch["train_loss"] for epoch in first.report["epochs"]]
    assert losses[-1] < losses[0]
    assert figures(trained(digits, settings, 6)) == figures(first)
    assert first.report["experiment"]["encoder"] == settings
    assert "encoders:Affine" in (first.folder / "model-card.md").read_text()
    affine = trained(digits, {"kind": "mlp", "hidden": []}, 6)
    assert first.report["parameters"] == affine.report["parameters"]


def test_an_encoder_works_with_the_method_fet(digits: Path) -> None:
    changes = {"method": {"kind": "fet", "hidden": 16, "heads": 2, "positional_encoding": False}}
    trained(digits, fet.encoder_settings(encoders.Affine), 1, **changes)


def test_refuses_encoders_with_faults(digits: Path) -> None:
    with pytest.raises(fet.InputError, match="returned the shape .* it must be"):
        trained(digits, fet.encoder_settings(encoders.Narrow))
    with pytest.raises(fet.InputError, match="unexpected keyword argument 'depth'"):
        trained(digits, fet.encoder_settings(encoders.Affine, depth=3))
    with pytest.raises(fet.InputError, match="source"):
        trained(digits, {**fet.encoder_settings(encoders.Affine), "source": ""})
    with pytest.raises(fet.InputError, match="is not the gradient of `forward` by its parameters"):
        trained(digits, fet.encoder_settings(encoders.Wrong))
    with pytest.raises(fet.FetError, match="no gradient today"):
        trained(digits, fet.encoder_settings(encoders.Late))


def test_the_contract_finds_a_wrong_gradient() -> None:
    fet.testing.check_encoder(encoders.Affine)
    fet.testing.check_encoder(encoders.Affine, scale=2.0)
    with pytest.raises(AssertionError):
        fet.testing.check_encoder(encoders.Wrong)


def test_a_module_of_pytorch_is_an_encoder(digits: Path) -> None:
    pytest.importorskip("torch")
    fet.testing.check_encoder(encoders.Perceptron, width=8)
    settings = fet.encoder_settings(encoders.Perceptron)
    first = trained(digits, settings, 6)
    losses = [epoch["train_loss"] for epoch in first.report["epochs"]]
    assert losses[-1] < losses[0]
    assert figures(trained(digits, settings, 6)) == figures(first)
    with pytest.raises(fet.InputError, match="has buffers"):
        trained(digits, fet.encoder_settings(encoders.Normed))


def test_a_study_compares_encoders(digits: Path) -> None:
    change = json.dumps(sets({"encoder": fet.encoder_settings(encoders.Affine)})[0])
    study = '\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = "mlp"\n'
    study += f'[[ablation.variants]]\nname = "affine in Python"\nset = [{change}]\n'
    digits.write_text(digits.read_text() + study)
    assert "affine in Python" in str(fet.study(digits, set={"train.epochs": 1}).data)


def test_a_changed_line_recomputes_only_the_cells_of_its_encoder(tmp_path: Path) -> None:
    module = tmp_path / "changing.py"
    module.write_text(
        """
import encoders, fet

@fet.encoder
class Scaled(encoders.Affine):
    size = 1

    def forward(self, keys, features):
        return self.size * super().forward(keys, features)

    def backward(self, gradient):
        return super().backward(self.size * gradient)
"""
    )
    program = tmp_path / "program.py"
    program.write_text(
        """
import changing, fet, json
settings = {
    "name": "digits", "data": {"kind": "split", "parties": 2, "source": {"kind": "digits"}},
    "linker": {"kind": "nearest", "neighbours": 3}, "method": {"kind": "fet-pool", "hidden": [16]},
}
python = fet.encoder_settings(changing.Scaled, scale=1.0)
study = fet.Study(settings, {"rust": {}, "python": {"encoder": python}}, [0, 1], folder="out")
study.run({"train.epochs": 1})
print(json.dumps([[row.variant, row.seed, row.test] for row in study.to_pandas().itertuples()]))
"""
    )

    def study() -> tuple[dict[str, int], list[Any]]:
        """Run the study in a new process; return the time of each cell's report, and the results."""
        environment = fet.plugins.environment()
        run = [sys.executable, str(program)]
        ended = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
        reports = (tmp_path / "out").rglob("cells/*/report.json")
        return {report.parent.name: report.stat().st_mtime_ns for report in reports}, json.loads(ended.stdout)

    first, results = study()
    assert sorted(name.split("-")[0] for name in first) == ["python", "python", "rust", "rust"]
    assert study() == (first, results)
    module.write_text(module.read_text().replace("size = 1", "size = 2"))
    second, changed = study()
    # The cells in Rust and the old ones in Python are as before, and there are two new ones in Python.
    assert first.items() < second.items()
    assert sorted(name[:9] for name in second.keys() - first.keys()) == ["python-s0", "python-s1"]
    assert [row for row in changed if row[0] == "rust"] == [row for row in results if row[0] == "rust"]
    assert all(row not in results for row in changed if row[0] == "python")
    # The old line needs no computation: its cells are still there.
    module.write_text(module.read_text().replace("size = 2", "size = 1"))
    assert study() == (second, results)
