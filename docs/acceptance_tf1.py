"""Public scripts of TensorFlow 1 that docs/make_acceptance.py verifies."""

from __future__ import annotations

from acceptance import Defect, Script
from public_paths import Edit

SCRIPTS: tuple[Script, ...] = (
    Script(
        "aymericdamien/TensorFlow-Examples",
        "6dcbe14",
        "session, feeds, RNN",
        "1.15",
        "tensorflow_v1/examples/3_NeuralNetworks",
        "dynamic_rnn.py",
        defect=Defect("rate 2 % higher", [Edit("dynamic_rnn.py", r"learning_rate = 0\.01", "learning_rate = 0.0102")]),
    ),
)
