"""``python -m ml_ops.train train-ocr DATA``: trains the reader of number plates."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepwatch.compat.ml_ops import images, profile
from stepwatch.compat.ml_ops.settings import GROUP, Settings, WrongOptionError, gather
from stepwatch.integrations._notes import note_once

if TYPE_CHECKING:
    import torch

    from stepwatch.compat.ml_ops.model import PlateOCR

logger = logging.getLogger("ml_ops.train")

_SYNTHETIC = 256  # plates, where nothing else is said


class Plates:
    """Pictures of plates and what stands on them, read when they are asked for."""

    def __init__(self, items: list[tuple[Path | None, str]]) -> None:
        """Take paths and plates; a plate without a path is drawn."""
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        from stepwatch.compat.ml_ops import model

        path, text = self.items[index]
        if path is None:
            picture, box = images.draw_plate(text)
        else:
            picture = images.load_image(path)
            name = images.parse_name(path.stem)
            box = list(name.box) if name else [0, 0, picture.width, picture.height]
        return _plate(picture, box, model.HEIGHT, model.WIDTH), model.encode([text])[0]


def _plate(picture: images.Picture, box: list[int], height: int, width: int) -> torch.Tensor:
    """Cut the plate out, grey, in the size that the network wants."""
    import torch

    data = torch.frombuffer(bytearray(picture.data), dtype=torch.uint8)
    whole = data.view(picture.height, picture.width, 3).float().mean(2) / 255
    left, top, right, bottom = box
    part = whole[top : min(bottom, picture.height), left : min(right, picture.width)]
    if part.numel() == 0:
        part = whole
    return torch.nn.functional.interpolate(
        part[None, None], (height, width), mode="bilinear", align_corners=False
    )[0]


def find_plates(data: Path, most: int | None) -> Plates:
    """Return the plates of a folder; made-up ones where it has no pictures, or is not there.

    So the guide's commands run anywhere, as they are written.
    """
    there = data.exists()
    if there and not data.is_dir():
        raise images.UnreadableError(f"{data} is no folder; name the folder that has the pictures.")
    found = images.find_images(data) if there else []
    if not found:
        count = most or _SYNTHETIC
        why = "has no pictures" if there else "is not there"
        logger.warning("%s %s: %d made-up plates are used instead.", data, why, count)
        return Plates([(None, images.plate_text(number)) for number in range(count)])
    named = [(path, images.parse_name(path.stem)) for path in found[:most]]
    items: list[tuple[Path | None, str]] = [(path, name.text) for path, name in named if name]
    if not items:
        raise images.UnreadableError(
            f"no picture in {data} has a plate in its name "
            "(area-tilt-box-corners-plate-brightness-blur)."
        )
    if len(items) < len(named):
        logger.info("%d pictures have no plate in their names.", len(named) - len(items))
    return Plates([item for item in items if _is_good(item[0])])


def _is_good(path: Path | None) -> bool:
    try:
        if path is not None:
            images.load_image(path)
    except (OSError, ValueError) as error:
        logger.warning("%s is passed over: %s", path, error)
        return False
    return True


def _loaders(plates: Plates, settings: Settings) -> tuple[Any, Any]:
    from torch.utils.data import DataLoader

    count = max(1, round(len(plates) * settings.val_split)) if settings.val_split else 0
    if len(plates) - count < 1:
        raise images.UnreadableError(
            f"{len(plates)} pictures are too few: training needs one, and validation one more; "
            f"set {GROUP}.val_split=0 to train without validation."
        )
    parts = Plates(plates.items[count:]), Plates(plates.items[:count])
    options: dict[str, Any] = {
        "batch_size": settings.batch_size,
        "num_workers": settings.num_workers,
    }
    return DataLoader(parts[0], **options), DataLoader(parts[1], **options)


def fit(model: PlateOCR, training: Any, validation: Any, epochs: int) -> None:
    """Train without Lightning, calling what Lightning would call."""
    import torch

    optimizer = model.configure_optimizers()
    for epoch in range(epochs):
        begin, count, total = time.perf_counter(), 0, 0.0
        model.own_epoch = epoch
        model.train()
        for number, batch in enumerate(training):
            model.on_train_batch_start(batch, number)
            loss = model.training_step(batch, number)
            model.backward(loss)
            model.update(optimizer)
            model.on_train_batch_end(loss, batch, number)
            count += len(batch[0])
            total += float(loss.detach()) * len(batch[0])
        seconds = time.perf_counter() - begin
        model.eval()
        losses, rights = [], []
        with torch.no_grad():
            for number, batch in enumerate(validation):
                losses.append(float(model.validation_step(batch, number)))
                rights.append(model.metrics["val_accuracy"])
        _say(epoch, total / max(1, count), losses, rights, count / max(seconds, 1e-9))


def _say(epoch: int, loss: float, losses: list[float], rights: list[float], rate: float) -> None:
    text = f"epoch {epoch}: loss {loss:.3f}, {rate:.1f} img/s"
    if losses:
        text += f"; validation loss {sum(losses) / len(losses):.3f}"
        text += f", plates read {sum(rights) / len(rights):.2f}"
    logger.info("%s", text)


def _fit_lightning(model: PlateOCR, training: Any, validation: Any, epochs: int) -> None:
    pytorch = import_module("lightning.pytorch")
    trainer = pytorch.Trainer(
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, training, validation if len(validation) else None)


def train_ocr(
    data: Path, max_images: int | None = None, settings: Settings | None = None
) -> PlateOCR:
    """Train a reader on the plates of a folder, and return it."""
    settings = settings or Settings()
    lightning = settings.trainer == "lightning"
    if lightning:
        try:
            import_module("lightning.pytorch")
        except ImportError:
            note_once("Lightning is not installed: the loop of ml_ops.train is used instead.")
            lightning = False
    try:
        import torch
    except ImportError as error:
        raise images.UnreadableError("torch is not installed, and training needs it.") from error

    from stepwatch.compat.ml_ops.model import PlateOCR

    torch.manual_seed(settings.seed)
    plates = find_plates(data, max_images or settings.max_images)
    training, validation = _loaders(plates, settings)
    on = profile.is_enabled(override=settings.typed_profiling, configured=settings.enable_profiling)
    folder = profile.output_dir(configured=settings.profile_output_dir)
    model = PlateOCR(settings.learning_rate, on, settings.profile_every_n_steps, folder)
    loop = _fit_lightning if lightning else fit
    logger.info(
        "Training on %d plates, %d batches an epoch; profiling is %s",
        len(training.dataset),
        len(training),
        f"on, into {folder}" if on else "off",
    )
    loop(model, training, validation, settings.max_epochs)
    return model


def main(argv: list[str] | None = None) -> int:
    """Run the command; 2 is wrong usage, 3 input that cannot be read."""
    profile.begin_here()
    parser = argparse.ArgumentParser(prog="python -m ml_ops.train")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    ocr = commands.add_parser(
        "train-ocr",
        help="train the reader of number plates",
        description="Trains the reader of number plates; a folder without pictures, or none, means "
        "made-up ones. Settings come from configs/training/ocr/default.yaml where that is.",
    )
    ocr.add_argument("data", type=Path, help="folder of pictures with names of the CCPD form")
    ocr.add_argument("--max-images", type=int, metavar="N", help="take no more than N")
    ocr.add_argument(
        "-o",
        "--override",
        action="append",
        default=[],
        metavar=f"{GROUP}.KEY=VALUE",
        help="change a setting; '/' and '.' mean the same",
    )
    ocr.add_argument("--config", type=Path, metavar="FILE", help="read the settings from FILE")
    options = parser.parse_args(argv)
    if options.max_images is not None and options.max_images < 1:
        ocr.error(f"--max-images is {options.max_images} but should be at least 1")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if options.config is not None and not options.config.is_file():
            raise WrongOptionError(f"{options.config} is no file.")
        train_ocr(options.data, options.max_images, gather(options.override, options.config))
    except WrongOptionError as error:
        print(f"ml_ops.train: {error}", file=sys.stderr)
        return 2
    except images.UnreadableError as error:
        print(f"ml_ops.train: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
