"""Tests of encoders in Python."""

import json
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
    with pytest.raises(fet.InputError, match="must name a class that encodes zeros .* it must be"):
        trained(digits, fet.encoder_settings(encoders.Narrow))
    with pytest.raises(fet.InputError, match="unexpected keyword argument 'depth'"):
        trained(digits, fet.encoder_settings(encoders.Affine, depth=3))
    with pytest.raises(fet.InputError, match="source"):
        trained(digits, {**fet.encoder_settings(encoders.Affine), "source": ""})
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
