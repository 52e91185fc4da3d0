#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes networks.txt, for test_plan_networks: the printed texts of small networks with the classes
# of examples/networks, and the parameters and buffers that the texts do not show.
import re
import sys
from functools import partial

from torch import nn
from torchvision.models import convnext, densenet, efficientnet, mobilenetv2, resnet
from torchvision.models import swin_transformer, vision_transformer
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel


def bert():
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=50,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=12,
            intermediate_size=48,
            max_position_embeddings=16,
        )
    )


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=24, n_layer=2))


def vit():
    return vision_transformer.VisionTransformer(16, 8, 2, 12, 24, 48, dropout=0.1, num_classes=10)


def swin():
    return swin_transformer.SwinTransformer(
        [4, 4], 32, [2, 2, 6, 2], [1, 2, 4, 8], [7, 7], num_classes=10, stochastic_depth_prob=0.2
    )


def convnext_tiny():
    config = convnext.CNBlockConfig
    blocks = [config(8, 16, 1), config(16, 24, 2), config(24, 32, 1), config(32, None, 1)]
    return convnext.ConvNeXt(blocks, 0.2, num_classes=10)


def efficientnet_b0():
    config = partial(efficientnet.MBConvConfig, width_mult=0.25, depth_mult=1.0)
    blocks = [config(1, 3, 1, 32, 16, 1), config(6, 3, 2, 16, 24, 2), config(6, 5, 2, 24, 40, 2)]
    return efficientnet.EfficientNet(blocks, 0.2, num_classes=10, last_channel=64)


def densenet121():
    return densenet.DenseNet(4, (2, 3, 2, 2), 8, bn_size=2, num_classes=10)


def mobilenet_v2():
    rows = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2]]
    return mobilenetv2.MobileNetV2(10, 0.25, rows)


def resnet50():
    return resnet.ResNet(resnet.Bottleneck, [1, 2, 1, 1], 10)


class Double(nn.Sequential):
    def __init__(self, inner, outer):
        super().__init__(
            nn.Conv2d(inner, outer, 3, padding=1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
            nn.Conv2d(outer, outer, 3, padding=1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = Double(3, 4), Double(4, 8), Double(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.join2 = nn.ConvTranspose2d(16, 8, 2, stride=2), Double(16, 8)
        self.up1, self.join1 = nn.ConvTranspose2d(8, 4, 2, stride=2), Double(8, 4)
        self.head = nn.Conv2d(4, 5, 1)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(12, 50)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for i, (inner, outer) in enumerate(((10, 16), (16, 8), (8, 8))):
            layers += [
                nn.ConvTranspose2d(inner, outer, 4, 2 if i else 1, 1 if i else 0, bias=False),
                nn.BatchNorm2d(outer),
                nn.ReLU(True),
            ]
        self.main = nn.Sequential(
            *layers, nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh()
        )


def smaller(text):
    """An eighth of the channels of a ResNet, which has no option for them."""
    text = re.sub(
        r"Conv2d\((\d+), (\d+)",
        lambda m: "Conv2d(%d, %d" % tuple(int(n) // 8 or int(n) for n in m.groups()),
        text,
    )
    return re.sub(
        r"(BatchNorm2d\(|in_features=)(\d+)", lambda m: m[1] + str(int(m[2]) // 8), text
    )


# Names in examples/networks, inputs: a shape, and the number of words or 0.
NETWORKS = (
    ("bert", bert, (2, 6), 50),
    ("convnext_tiny", convnext_tiny, (2, 3, 32, 32), 0),
    ("dcgan", Generator, (2, 10, 1, 1), 0),
    ("densenet121", densenet121, (2, 3, 32, 32), 0),
    ("efficientnet_b0", efficientnet_b0, (2, 3, 16, 16), 0),
    ("gpt2", gpt2, (2, 6), 50),
    ("lstm", LanguageModel, (2, 6), 50),
    ("mobilenet_v2", mobilenet_v2, (2, 3, 16, 16), 0),
    ("resnet50", resnet50, (2, 3, 32, 32), 0),
    ("swin_t", swin, (1, 3, 224, 224), 0),
    ("unet", UNet, (2, 3, 8, 12), 0),
    ("vit_b_16", vit, (2, 3, 16, 16), 0),
)


def main():
    with open(sys.argv[1], "w") as out:
        out.write("# SPDX-License-Identifier: MIT\n# Written by make_networks.py.\n")
        for name, make, shape, words in NETWORKS:
            net = make()
            text = str(net)
            out.write("network %s %d %s\n" % (name, words, " ".join(map(str, shape))))
            out.write((smaller(text) if name == "resnet50" else text) + "\ntensors\n")
            for path, module in net.named_modules():
                known = type(module).__module__.startswith("torch.nn")
                if isinstance(module, nn.LayerNorm) or (
                    known and not isinstance(module, nn.MultiheadAttention)
                ):
                    continue
                for kind in ("parameter", "buffer"):
                    for tensor, value in getattr(module, "named_%ss" % kind)(recurse=False):
                        if tensor in module.state_dict(keep_vars=True):
                            full = path + "." + tensor if path else tensor
                            row = [kind, full, *map(str, value.shape)]
                            out.write(" ".join(row) + "\n")
            out.write("end\n")


main()
