#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_models.py SOURCES: writes models and data to tests/tools/files, and expected.json there with
# what PyTorch computes: eval.sh and predict.sh compare the commands with it.
import csv
import gzip
import json
import os
import sys

import numpy
import torch
from safetensors.torch import save_file
from torch import nn

NAMES = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]


def digits(source):
    with gzip.open(os.path.join(source, "examples/data/digits.csv.gz"), "rt") as file:
        rows = numpy.array([[float(x) for x in row] for row in csv.reader(file)])
    images = torch.tensor(rows[:, :64] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    labels = torch.tensor(rows[:, 64], dtype=torch.int64)
    test = torch.arange(len(rows)) % 5 == 4
    return images[~test], labels[~test], images[test], labels[test]


def area(scores, truth):
    """The share of pairs of a sample of the class and another one that are in order."""
    below = scores[truth][:, None] - scores[~truth][None, :]
    return float(((below > 0).double() + (below == 0).double() / 2).mean())


def per_class(labels, found, probabilities):
    rows = []
    for c in range(10):
        seen = int((labels == c).sum())
        results = int((found == c).sum())
        hit = int(((labels == c) & (found == c)).sum())
        rows.append(
            {
                "name": NAMES[c],
                "samples": seen,
                "results": results,
                "correct": hit,
                "recall": hit / seen,
                "precision": hit / results,
                "f1": 2 * hit / (seen + results),
                "auc": area(probabilities[:, c], labels == c),
            }
        )
    return rows


def main():
    source = sys.argv[1]
    folder = os.path.join(source, "tests/tools/files")
    torch.manual_seed(1)
    images, labels, test_images, test_labels = digits(source)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    net.eval()
    metadata = {
        "tenon.spec": "Sequential(Flatten(), Linear(64, 10))",
        "tenon.classes": json.dumps(NAMES),
    }
    state = {name: value.detach() for name, value in net.state_dict().items()}
    save_file(state, os.path.join(folder, "digits.safetensors"), metadata)
    torch.save(state, os.path.join(folder, "digits.pt"))
    run = {"model." + name: value for name, value in state.items()}
    run["optimizer.state.0.step"] = torch.tensor(60.0)
    save_file(run, os.path.join(folder, "run.safetensors"), metadata)
    with torch.no_grad():
        scores = net(test_images)
    found = scores.argmax(1)
    best = scores.topk(3, 1).indices
    confusion = [
        [int(((test_labels == a) & (found == b)).sum()) for b in range(10)] for a in range(10)
    ]
    shown = test_images[:3]
    numpy.save(os.path.join(folder, "digits.npy"), shown.numpy())
    probabilities = scores[:3].softmax(1)
    top = probabilities.topk(3, 1)

    x = torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])
    y = torch.tensor([1.5, 2.0, -1.0])
    line = nn.Linear(2, 1)
    with torch.no_grad():
        line.weight.copy_(torch.tensor([[0.5, -0.25]]))
        line.bias.copy_(torch.tensor([1.0]))
        out = line(x)
    save_file(
        {name: value.detach() for name, value in line.state_dict().items()},
        os.path.join(folder, "line.safetensors"),
        {"tenon.spec": "Linear(2, 1)"},
    )
    with open(os.path.join(folder, "line.csv"), "w", encoding="utf-8") as file:
        for row, target in zip(x.tolist(), y.tolist()):
            file.write(f"{row[0]},{row[1]},{target}\n")
    classes = per_class(test_labels, found, scores.double().softmax(1))
    losses = nn.functional.cross_entropy(scores.double(), test_labels, reduction="none")
    worst = losses.topk(3)
    expected = {
        "torch": torch.__version__.split("+")[0],
        "eval": {
            "samples": len(test_labels),
            "loss": float(nn.functional.cross_entropy(scores, test_labels)),
            "correct": int((found == test_labels).sum()),
            "accuracy": float((found == test_labels).double().mean()),
            "k": 3,
            "top_accuracy": float((best == test_labels[:, None]).any(1).double().mean()),
            "f1": sum(row["f1"] for row in classes) / 10,
            "auc": sum(row["auc"] for row in classes) / 10,
            "classes": classes,
            "confusion": confusion,
            "worst": [
                {
                    "index": int(i),
                    "true": NAMES[int(test_labels[i])],
                    "result": NAMES[int(found[i])],
                    "loss": float(loss),
                }
                for loss, i in zip(worst.values, worst.indices)
            ],
        },
        "line": {
            "samples": 3,
            "loss": float(nn.functional.mse_loss(out, y[:, None])),
        },
        "line_l1": {"loss": float(nn.functional.l1_loss(out, y[:, None]))},
        "raw": [{"output": row} for row in scores[:3].tolist()],
        "top": [
            {
                "classes": [
                    {"index": int(i), "name": NAMES[int(i)], "probability": float(p)}
                    for i, p in zip(top.indices[n], top.values[n])
                ]
            }
            for n in range(3)
        ],
    }
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
