"""Public repositories that docs/make_public_paths.py takes from assess to two ranks."""

from __future__ import annotations

from typing import NamedTuple, Sequence

_GPT = (
    "--num-layers=2 --embedding-size=32 --num-heads=4 --dff=64 --max-seq-len=32 --vocab-size=100 --batch-size=8 "
    "--graph-mode=True"
)
_VIT = "--batch-size 32 --epochs 2 --num-layers 2"
_BROADCAST = "sess.run(hccl_ops.broadcast(tf.global_variables(), 0))"
_INITIALIZED = r"(?m)^( *)(.*tf\.global_variables_initializer\(\).*)$"


class Edit(NamedTuple):
    """A replacement by a regular expression, in a file of the project.

    Attributes:
        file, pattern, replacement: as in `re.sub`.
    """

    file: str
    pattern: str
    replacement: str


class Repository(NamedTuple):
    """A public repository, and how its script is run.

    Attributes:
        name, commit: on GitHub.
        kind: of program, for the table.
        tensorflow: the version it runs with.
        folder: of the project in the repository, which is copied.
        start: the folder in it in which the script starts.
        script: in that folder.
        review: right / needless / wrong / missed changes, as read by a person.
        arguments: of the script.
        mode: the option -d of the migration tool with one process.
        data: arguments of public_data.py; the folder is one of the project.
        links: symbolic links to make, and their targets.
        edits: that make the script small.
        ranks: arguments of the script with which ranks are compared, None if they are not.
        reason: why they are not.
        plain: edits that turn randomness off for that.
        by_hand: edits of the migrated script, as the findings of the tool ask.
        tolerance: of that comparison, "" for the default.
    """

    name: str
    commit: str
    kind: str
    tensorflow: str
    folder: str
    start: str
    script: str
    review: str
    arguments: str = ""
    mode: str = ""
    data: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    edits: Sequence[Edit] = ()
    ranks: str | None = None
    reason: str = ""
    plain: Sequence[Edit] = ()
    by_hand: Sequence[Edit] = ()
    tolerance: str = ""


REPOSITORIES = (
    Repository(
        "tkipf/gcn",
        "39a4089",
        "session, sparse feeds",
        "1.15",
        "",
        "gcn",
        "train.py",
        "3 / 0 / 0 / 0",
        links=[("gcn/gcn", ".")],
        ranks="--dropout=0",
        by_hand=[
            Edit("gcn/train.py", _INITIALIZED, r"\1\2\n\1" + _BROADCAST),
        ],
    ),
    Repository(
        "omoindrot/tensorflow-triplet-loss",
        "fc69836",
        "Estimator",
        "1.15",
        "",
        "",
        "train.py",
        "17 / 0 / 0 / 0",
        arguments="--model_dir=experiments/batch_all",
        data=["digits", "data/mnist", "1024", "300"],
        edits=[
            Edit("experiments/batch_all/params.json", rf'("{name}":) \d+', rf"\1 {value}")
            for name, value in (("num_epochs", 2), ("train_size", 1000), ("eval_size", 300))
        ],
        reason="triplets of a batch",
    ),
    Repository(
        "hwalsuklee/tensorflow-mnist-VAE",
        "e7903ac",
        "session, feeds, dropout",
        "1.15",
        "",
        "",
        "run_main.py",
        "5 / 0 / 0 / 1",
        arguments="--dim_z 20 --num_epochs 1",
        data=["digits", "data", "60000", "10000", "gz"],
        ranks="--dim_z 20 --num_epochs 1",
        plain=[
            Edit("run_main.py", r"keep_prob : 0\.9", "keep_prob : 1.0"),
            Edit("vae.py", r"sigma \* tf\.random_normal", "0. * sigma * tf.random_normal"),
        ],
        by_hand=[
            Edit("run_main.py", _INITIALIZED, r"\1\2\n\1" + _BROADCAST),
            Edit("run_main.py", r"(x(?:_hat)?: batch_xs_\w+)", r"\1[get_rank_id()::get_rank_size()]"),
        ],
        tolerance="1e-4",
    ),
    Repository(
        "emla2805/vision-transformer",
        "9e6e782",
        "fit, MirroredStrategy",
        "2.6",
        "",
        "",
        "train.py",
        "5 / 0 / 0 / 0",
        arguments=_VIT,
        mode="tf_strategy",
        ranks=_VIT,
        plain=[Edit(file, r"dropout=0\.1", "dropout=0.") for file in ("model.py", "train.py")],
    ),
    Repository(
        "akanyaani/gpt-2-tensorflow2.0",
        "ab93122",
        "tf.function, strategy, a project",
        "2.15",
        "",
        "",
        "train_gpt2.py",
        "7 / 1 / 0 / 0",
        arguments=_GPT,
        mode="tf_strategy",
        data=["records", "data/tf_records"],
        ranks=_GPT + " --distributed=True",
        plain=[
            Edit("gpt2_model.py", r"dr_rate=0\.1", "dr_rate=0."),
            Edit("layers/attention_layer.py", r"_dropout=0\.1", "_dropout=0."),
            Edit("layers/feed_forward.py", r"dropout_rate=0\.1", "dropout_rate=0."),
        ],
        tolerance="1e-3",
    ),
    Repository(
        "thisisiron/TF2-GAN",
        "4833412",
        "GAN, tf.function",
        "2.15",
        "wgan-gp",
        "",
        "train.py",
        "2 / 0 / 0 / 0",
        edits=[Edit("train.py", r"epochs = \d+", "epochs = 2")],
        reason="rounding in Adam",
    ),
)
