"""Data sets: generated ones, and those that are read from a user's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from archgym.envs.nas.data import Dataset, checked_folders, load
from archgym.envs.nas.data.cells import draw
from archgym.envs.nas.data.nuclei import scaled
from archgym.errors import InvalidValueError, UnknownNameError

Bytes = NDArray[np.uint8]


# -- made here -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "digest"), [("digits", "8d7701c2d167f903"), ("cells", "cf22e9605527e50a")]
)
def test_made_data_are_those_of_the_tables(name: str, digest: str) -> None:
    assert load(name).digest == digest


def test_digits_are_all_of_scikit_learns() -> None:
    from sklearn.datasets import load_digits

    data = load("digits")
    assert data.train_images.shape == (640, 1, 8, 8)
    assert data.test_images.shape == (1157, 1, 8, 8)
    labels = np.concatenate([data.train_labels, data.test_labels])
    expected = np.bincount(load_digits().target)
    assert np.bincount(labels.astype(int)).tolist() == expected.tolist()
    # The noise has mean 0: sums over all images of a class stay near those of the originals.
    images = np.concatenate([data.train_images, data.test_images])[:, 0]
    for digit in range(10):
        clean = (load_digits().images[load_digits().target == digit] / 16).mean(axis=0)
        assert np.abs(images[labels == digit].mean(axis=0) - clean).max() < 6 * 0.2 / 170**0.5


def test_cells_have_nuclei_in_and_out_of_bright_backgrounds() -> None:
    data = load("cells")
    images = np.concatenate([data.train_images, data.test_images])
    masks = np.concatenate([data.train_labels, data.test_labels])
    assert images.shape == masks.shape == (480, 1, 32, 32)
    assert set(np.unique(masks)) == {0.0, 1.0}
    covered = masks.mean(axis=(1, 2, 3))
    assert covered.min() > 0.01
    assert covered.max() < 0.8
    inside = (images * masks).sum(axis=(1, 2, 3)) / masks.sum(axis=(1, 2, 3))
    outside = (images * (1 - masks)).sum(axis=(1, 2, 3)) / (1 - masks).sum(axis=(1, 2, 3))
    assert 0.4 < (inside > outside).mean() < 0.6


def test_no_threshold_of_brightness_finds_the_cells() -> None:
    data = load("cells")
    mask = data.test_labels > 0.5
    for threshold in np.linspace(0.0, 1.0, 21):
        for found in (data.test_images > threshold, data.test_images < threshold):
            assert (found & mask).sum() / (found | mask).sum() < 0.5


def test_a_seed_draws_the_same_cells_again() -> None:
    one, other = (draw(np.random.default_rng(5)) for _ in range(2))
    different, _ = draw(np.random.default_rng(6))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(one[0], different)


# -- CIFAR-10 ------------------------------------------------------------------------------------


def cifar10(folder: Path, batches: int = 5) -> Path:
    """Two images a file; pixel values encode channel, row and column."""
    place = folder / "cifar-10-batches-bin"
    place.mkdir(parents=True)
    names = [f"data_batch_{number}.bin" for number in range(1, batches + 1)]
    for file, name in enumerate([*names, "test_batch.bin"]):
        records = np.empty((2, 3073), dtype=np.uint8)
        records[:, 0] = [file, 9]
        records[0, 1:] = np.arange(3072) % 251
        records[1, 1:] = 255
        (place / name).write_bytes(records.tobytes())
    return place


def test_cifar10_has_planes_of_rows(tmp_path: Path) -> None:
    cifar10(tmp_path)
    data = load("cifar10", tmp_path)
    assert data.train_images.shape == (10, 3, 32, 32)
    assert data.train_images.dtype == np.float32
    assert data.train_labels.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert data.test_labels.tolist() == [5, 9]
    green = data.train_images[0, 1, 2, 3]
    assert green == pytest.approx(((1024 + 2 * 32 + 3) % 251) / 255)
    assert data.train_images[1].min() == 1.0


def test_the_inner_folder_of_cifar10_is_found_too(tmp_path: Path) -> None:
    place = cifar10(tmp_path)
    assert load("cifar10", place).digest == load("cifar10", tmp_path).digest


def test_a_missing_batch_of_cifar10_is_named(tmp_path: Path) -> None:
    cifar10(tmp_path, batches=4)
    with pytest.raises(InvalidValueError, match=r"no data_batch_5\.bin"):
        load("cifar10", tmp_path)


def test_the_pickled_version_of_cifar10_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    with pytest.raises(InvalidValueError, match=r"pickle.*binary version"):
        load("cifar10", tmp_path)


def test_half_a_record_is_refused(tmp_path: Path) -> None:
    place = cifar10(tmp_path)
    with (place / "data_batch_3.bin").open("r+b") as file:
        file.truncate(4000)
    with pytest.raises(InvalidValueError, match=r"data_batch_3\.bin: 4000 bytes.*3073"):
        load("cifar10", tmp_path)


def test_a_class_that_cifar10_lacks_is_refused(tmp_path: Path) -> None:
    place = cifar10(tmp_path)
    (place / "test_batch.bin").write_bytes(bytes([10]) + bytes(3072))
    with pytest.raises(InvalidValueError, match="class 10; classes are 0 to 9"):
        load("cifar10", tmp_path)


# -- STL-10 --------------------------------------------------------------------------------------


def stl10(folder: Path) -> Path:
    place = folder / "stl10_binary"
    place.mkdir(parents=True)
    image = np.zeros((3, 96, 96), dtype=np.uint8)  # channel, column, row
    image[2, 5, 90] = 255
    for split, count in (("train", 3), ("test", 2)):
        (place / f"{split}_X.bin").write_bytes(np.stack([image] * count).tobytes())
        (place / f"{split}_y.bin").write_bytes(bytes([1, 10, 4][:count]))
    return place


def test_stl10_has_planes_of_columns(tmp_path: Path) -> None:
    stl10(tmp_path)
    data = load("stl10", tmp_path)
    assert data.train_images.shape == (3, 3, 96, 96)
    assert data.train_labels.tolist() == [0, 9, 3]
    assert np.argwhere(data.test_images[1]).tolist() == [[2, 90, 5]]
    assert data.test_images.max() == 1.0


def test_stl10_needs_a_label_for_each_image(tmp_path: Path) -> None:
    (stl10(tmp_path) / "train_y.bin").write_bytes(bytes([1, 2]))
    with pytest.raises(InvalidValueError, match="train: 3 images and 2 labels"):
        load("stl10", tmp_path)


@pytest.mark.parametrize("label", [0, 11])
def test_classes_of_stl10_count_from_one(tmp_path: Path, label: int) -> None:
    (stl10(tmp_path) / "test_y.bin").write_bytes(bytes([label, 2]))
    with pytest.raises(InvalidValueError, match="they must be 1 to 10"):
        load("stl10", tmp_path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (stl10(tmp_path) / "test_X.bin").write_bytes(b"")
    with pytest.raises(InvalidValueError, match=r"test_X\.bin: 0 bytes"):
        load("stl10", tmp_path)


# -- nuclei --------------------------------------------------------------------------------------


def png(path: Path, image: Bytes) -> None:
    from matplotlib.image import imsave

    path.parent.mkdir(parents=True, exist_ok=True)
    imsave(path, image, cmap="gray", vmin=0, vmax=255)


def nuclei(folder: Path, samples: int = 5, rows: int = 256, columns: int = 320) -> Path:
    """Each image has a nucleus top left and one bottom right; the last has the test."""
    place = folder / "stage1_train"
    for number in range(samples):
        image = np.zeros((rows, columns, 4), dtype=np.uint8)
        image[:, :, 0], image[:, :, 3] = 51 * number, 255
        first, second = np.zeros((2, rows, columns), dtype=np.uint8)
        first[: rows // 2, : columns // 4] = 255
        second[rows // 2 :, columns // 2 :] = 255
        sample = place / f"{number:04d}"
        png(sample / "images" / f"{number:04d}.png", image)
        png(sample / "masks" / "a.png", first)
        png(sample / "masks" / "b.png", second)
    return place


def test_masks_of_nuclei_are_put_together(tmp_path: Path) -> None:
    nuclei(tmp_path)
    data = load("nuclei", tmp_path)
    assert data.train_images.shape == (4, 3, 128, 128)
    assert data.train_labels.shape == (4, 1, 128, 128)
    assert data.train_images[:, 0, 7, 9] == pytest.approx([0.0, 0.2, 0.4, 0.6])
    assert data.test_images[0, :, 64, 64] == pytest.approx([0.8, 0.0, 0.0])
    mask = np.zeros((128, 128))
    mask[:64, :32] = 1
    mask[64:, 64:] = 1
    assert np.array_equal(data.test_labels[0, 0], mask)


def test_masks_of_another_size_are_refused(tmp_path: Path) -> None:
    place = nuclei(tmp_path)
    png(place / "0002" / "masks" / "a.png", np.zeros((20, 30), dtype=np.uint8))
    with pytest.raises(InvalidValueError, match=r"a\.png: \(20, 30\) pixels.*\(256, 320\)"):
        load("nuclei", tmp_path)


def test_an_image_without_masks_is_refused(tmp_path: Path) -> None:
    place = nuclei(tmp_path)
    for mask in (place / "0001" / "masks").iterdir():
        mask.unlink()
    with pytest.raises(InvalidValueError, match="0001: 1 images and 0 masks"):
        load("nuclei", tmp_path)


def test_a_file_that_is_no_png_is_refused(tmp_path: Path) -> None:
    place = nuclei(tmp_path)
    (place / "0003" / "images" / "0003.png").write_text("no image")
    with pytest.raises(InvalidValueError, match=r"0003\.png: cannot be read as PNG"):
        load("nuclei", tmp_path)


def test_too_few_nuclei_are_refused(tmp_path: Path) -> None:
    nuclei(tmp_path, samples=2)
    with pytest.raises(InvalidValueError, match="2 folders with images"):
        load("nuclei", tmp_path)


def test_scaling_takes_means_over_areas() -> None:
    image = np.arange(16, dtype=np.float64).reshape(4, 4)
    assert scaled(image, 2).tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert scaled(image, 8)[::2, ::2].tolist() == image.tolist()
    # Three pixels to two: each takes one and a half.
    assert scaled(np.array([[0.0, 3.0, 6.0]] * 3), 2)[0] == pytest.approx([1.0, 5.0])
    rng = np.random.default_rng(0)
    uneven = rng.random((37, 53, 3))
    assert scaled(uneven, 16).mean(axis=(0, 1)) == pytest.approx(uneven.mean(axis=(0, 1)))


# -- what is refused -----------------------------------------------------------------------------


def test_data_that_do_not_ship_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"does not ship.*cifar-10-batches-bin"):
        load("cifar10")
    with pytest.raises(InvalidValueError, match="is no folder"):
        load("stl10", tmp_path / "none")
    with pytest.raises(InvalidValueError, match="is no folder"):
        load("nuclei", tmp_path / "none")


def test_unknown_data_sets_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'cifar10'"):
        load("cifar-10")
    with pytest.raises(UnknownNameError, match="data: unknown data set 'digits'"):
        checked_folders({"digits": "here"})
    with pytest.raises(InvalidValueError, match="mapping of data sets"):
        checked_folders("here")  # type: ignore[arg-type]


def test_each_image_has_a_label() -> None:
    images = np.zeros((3, 1, 2, 2), dtype=np.float32)
    labels = np.zeros(3, dtype=np.int64)
    with pytest.raises(InvalidValueError, match="test: 3 images and 2 labels"):
        Dataset(images, labels, images, labels[:2])
