"""Tests of the paper's encoder in PyTorch: against the authors' model, and against the program's encoder."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fet

torch: Any = pytest.importorskip("torch")

import encoders  # noqa: E402
import paper_encoder  # noqa: E402

Arrays = dict[str, Any]

# Names of the authors' parameters, and of the program's, by patterns of the module's names.
AUTHORS = [
    (r"embedding\.", r"data_embeddings.PARTY."),
    (r"position\.frequencies\.", r"positional_encodings.PARTY.Wr."),
    (r"position\.network\.0\.", r"positional_encodings.PARTY.mlp.0."),
    (r"position\.network\.3\.", r"positional_encodings.PARTY.mlp.2."),
    (r"mask\.0\.", r"dynamic_mask_layers.PARTY.0."),
    (r"mask\.3\.", r"dynamic_mask_layers.PARTY.2."),
    (r"attention\.(\d+)\.", r"self_attns.PARTY.attn_blocks.\1.attn."),
    (r"feed_forward\.(\d+)\.0\.", r"self_attns.PARTY.ffn_blocks.\1.linear1."),
    (r"feed_forward\.(\d+)\.3\.", r"self_attns.PARTY.ffn_blocks.\1.linear2."),
    (r"attention_norms\.0\.", r"self_attns.PARTY.attn_norm."),
    (r"feed_forward_norms\.0\.", r"self_attns.PARTY.ffn_norm."),
]
PROGRAM = [
    (r"embedding\.", r"embedding.input."),
    (r"position\.frequencies\.weight", r"embedding.position.frequencies"),
    (r"position\.network\.0\.", r"embedding.position.hidden."),
    (r"position\.network\.3\.", r"embedding.position.output."),
    (r"mask\.0\.", r"mask.hidden."),
    (r"mask\.3\.", r"mask.output."),
    (r"attention\.(\d+)\.in_proj_", r"chain.blocks.\1.attention.projection."),
    (r"attention\.(\d+)\.out_proj\.", r"chain.blocks.\1.attention.output."),
    (r"feed_forward\.(\d+)\.0\.", r"chain.blocks.\1.feed_forward.hidden."),
    (r"feed_forward\.(\d+)\.3\.", r"chain.blocks.\1.feed_forward.output."),
    (r"(\w+_norms)\.(\d+)\.weight", r"chain.\1.each.\2.gamma"),
    (r"(\w+_norms)\.(\d+)\.bias", r"chain.\1.each.\2.beta"),
]


def renamed(names: Iterable[str], patterns: list[tuple[str, str]]) -> dict[str, str]:
    """Return the other program's name of each parameter."""
    found = {}
    for name in names:
        (pattern, other) = next(pair for pair in patterns if re.match(pair[0], name))
        found[name] = re.sub(f"^{pattern}", other, name)
    return found


def read_tensors(path: Path) -> tuple[Arrays, Any]:
    """Return the tensors of a safetensors file, and its metadata."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__", {})
    kinds = {"F32": np.float32, "I64": np.int64}
    arrays = {}
    for name, place in header.items():
        first, last = (start + offset for offset in place["data_offsets"])
        arrays[name] = np.frombuffer(content[first:last], kinds[place["dtype"]]).reshape(place["shape"]).copy()
    return arrays, metadata


class Golden:
    """A pass of the authors' model: parameters, inputs, output and gradients."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self.arrays, metadata = read_tensors(path)
        self.settings = {name: json.loads(value) for name, value in metadata.items()}
        self.parties = len(self.settings["key_dims"])
        names = [name.removeprefix("param.") for name in self.arrays if name.startswith("param.")]
        self.parameters = {name: self.tensor(f"param.{name}").requires_grad_() for name in names}

    def tensor(self, name: str) -> Any:
        return torch.from_numpy(self.arrays[name])

    def encoder(self, party: int) -> Any:
        """Make the encoder of a secondary, with the file's parameters."""
        settings = self.settings
        keys, features = settings["key_dims"][party], settings["data_dims"][party]
        made = paper_encoder.PaperEncoder(
            keys, features, settings["hidden"], settings["neighbours"], settings["heads"], settings["local_blocks"],
            positional_encoding=settings["positional_encoding"], dynamic_mask=settings["dynamic_mask"],
            shared_norm=True,
        )  # fmt: skip
        made.load_state_dict({name: self.parameters[theirs] for name, theirs in self.names(party, made).items()})
        return made.eval()

    def names(self, party: int, encoder: Any) -> dict[str, str]:
        """Return the authors' name of each parameter of an encoder."""
        names = renamed(dict(encoder.named_parameters()), AUTHORS)
        return {ours: theirs.replace("PARTY", str(party)) for ours, theirs in names.items()}

    def linear(self, x: Any, name: str) -> Any:
        parameters = self.parameters
        return torch.nn.functional.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])

    def normed(self, x: Any, name: str) -> Any:
        name = f"agg_attn.{name}"
        parameters = self.parameters
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], parameters[f"{name}.weight"], parameters[f"{name}.bias"]
        )

    def attended(self, x: Any, memory: Any, name: str) -> Any:
        """Attention by its definition."""
        name, heads = f"agg_attn.{name}.attn", self.settings["heads"]
        weights = self.parameters[f"{name}.in_proj_weight"].chunk(3)
        biases = self.parameters[f"{name}.in_proj_bias"].chunk(3)
        inputs = zip((x, memory, memory), weights, biases)
        queries, keys, values = (
            torch.nn.functional.linear(*one).unflatten(2, (heads, -1)).transpose(1, 2) for one in inputs
        )
        logits = queries @ keys.transpose(2, 3) / queries.shape[3] ** 0.5
        return self.linear((logits.softmax(3) @ values).transpose(1, 2).flatten(2), f"{name}.out_proj")

    def decode(self, memory: Any) -> Any:
        """The primary's model, with the file's parameters."""
        gelu = torch.nn.functional.gelu
        keys = self.tensor("input.key.0")
        x = self.linear(torch.cat([keys, self.tensor("input.data.0")], 2), "data_embeddings.0")
        if self.settings["positional_encoding"]:
            angles = keys @ self.parameters["positional_encodings.0.Wr.weight"].T
            waves = torch.cat([angles.cos(), angles.sin()], 2) / x.shape[2] ** 0.5
            hidden = gelu(self.linear(waves, "positional_encodings.0.mlp.0"))
            x = x + self.linear(hidden, "positional_encodings.0.mlp.2")
        for block in range(self.settings["agg_blocks"]):
            normed = self.normed(x, "attn_norm1")
            x = x + self.attended(normed, normed, f"self_attn_blocks.{block}")
            x = x + self.attended(self.normed(x, "attn_norm2"), memory, f"agg_attn_blocks.{block}")
            place = f"agg_attn.ffn_blocks.{block}"
            x = x + self.linear(gelu(self.linear(self.normed(x, "ffn_norm"), f"{place}.linear1")), f"{place}.linear2")
        return self.linear(x[:, 0], "output_layer")

    def loss(self, output: Any) -> Any:
        labels = self.tensor("input.label")
        functions = torch.nn.functional
        if self.settings["task"] == "cls":
            return functions.cross_entropy(output, labels)
        loss = functions.mse_loss if self.settings["task"] == "reg" else functions.binary_cross_entropy
        return loss(output[:, 0], labels.float())


@pytest.mark.parametrize(
    "name", ["two_party_regression", "four_party_multiclass", "no_mask", "no_position"]
)
def test_the_module_gives_the_output_and_gradients_of_the_authors_model(name: str) -> None:
    folder = os.environ.get("FET_GOLDEN")
    if not folder:
        pytest.skip("FET_GOLDEN does not name the folder of golden files")
    golden = Golden(Path(folder) / f"{name}.safetensors")
    encoders = {party: golden.encoder(party) for party in range(1, golden.parties)}
    encoded = [
        encoder(golden.tensor(f"input.key.{party}"), golden.tensor(f"input.data.{party}"))
        for party, encoder in encoders.items()
    ]
    output = golden.decode(torch.stack(encoded).mean(0))
    if golden.settings["output"] == "sigmoid":
        output = output.sigmoid()
    expected = golden.tensor("output").reshape(output.shape)
    assert (output - expected).abs().max() <= 1e-5
    loss = golden.loss(output)
    assert abs(loss.item() - golden.arrays["loss"].item()) <= 1e-5
    loss.backward()
    compared = set()
    for party, encoder in encoders.items():
        found = {theirs: encoder.get_parameter(ours).grad for ours, theirs in golden.names(party, encoder).items()}
        assert len(found) == len(list(encoder.parameters()))
        for theirs, gradient in found.items():
            wanted = golden.tensor(f"grad.{theirs}")
            difference = (gradient - wanted).abs().max() / wanted.abs().max()
            assert difference <= 1e-4, (theirs, difference)
            compared.add(f"grad.{theirs}")
    # Every gradient in the file that belongs to a secondary was compared.
    kinds = ("data_embeddings", "positional_encodings", "dynamic_mask_layers", "self_attns")
    places = tuple(f"grad.{kind}.{party}." for kind in kinds for party in encoders)
    assert compared == {name for name in golden.arrays if name.startswith(places)}


def test_the_module_obeys_the_laws_of_encoders() -> None:
    settings = {"neighbours": 4, "heads": 2, "blocks": 2, "dropout": 0.25, "frequency_std": 1.0}
    fet.testing.check_encoder(paper_encoder.PaperEncoder, **settings)


@pytest.mark.parametrize(
    ("blocks", "mask", "position", "shared"),
    [(1, True, True, False), (2, True, True, False), (3, False, True, True), (1, True, False, False)],
)
def test_equal_parameters_give_the_outputs_and_gradients_of_the_program(
    digits: Path, tmp_path: Path, blocks: int, mask: bool, position: bool, shared: bool
) -> None:
    # One step at a rate too small to change a parameter. The first moment of LAMB is then the gradient, times 0.1.
    settings = {
        "method": {
            "kind": "fet", "hidden": 16, "heads": 2, "dropout": 0, "frequency_std": 1.0, "shared_norm": shared,
            "positional_encoding": position, "optimizer": {"learning_rate": 1e-30},
        },
        "train": {"epochs": 1, "batch_size": 2000},
    }  # fmt: skip
    builtin = {"kind": "transformer", "blocks": blocks, "dynamic_mask": mask}
    expected = fet.run(digits, tmp_path / "rust", {**settings, "encoder": builtin})
    (state,) = (tmp_path / "rust").glob("parties/*/state-1.safetensors")
    theirs = read_tensors(state)[0]
    options = {
        "neighbours": 3, "heads": 2, "blocks": blocks, "dropout": 0.0, "dynamic_mask": mask,
        "positional_encoding": position, "shared_norm": shared,
    }  # fmt: skip
    names = renamed(dict(paper_encoder.PaperEncoder(4, 1, 16, **options).named_parameters()), PROGRAM)
    # The program stores matrices as [inputs, outputs].
    torch.save({ours: torch.from_numpy(theirs[f"now.{name}"].T) for ours, name in names.items()}, tmp_path / "start.pt")
    python = fet.encoder_settings(encoders.Started, parameters=str(tmp_path / "start.pt"), **options)
    found = fet.run(digits, tmp_path / "python", {**settings, "encoder": python})
    assert found.report["parameters"] == expected.report["parameters"]
    assert found.report["epochs"][0]["train_loss"] == pytest.approx(expected.report["epochs"][0]["train_loss"], abs=1e-5)
    outputs = [read_tensors(run.folder / "checkpoint.safetensors")[0]["outputs.test"] for run in (found, expected)]
    assert np.ptp(outputs[1]) > 0.1
    assert np.abs(outputs[0] - outputs[1]).max() <= 1e-5
    (state,) = (tmp_path / "python").glob("parties/*/state-1.safetensors")
    ours = read_tensors(state)[0]
    assert len(ours) == len(theirs)
    for name, other in names.items():
        assert (ours[f"now.{name}"] == theirs[f"now.{other}"].T).all(), name
        gradient, wanted = ours[f"first.{name}"], theirs[f"first.{other}"].T
        assert np.abs(wanted).max() > 0, other
        assert np.abs(gradient - wanted).max() <= 1e-4 * np.abs(wanted).max(), name
