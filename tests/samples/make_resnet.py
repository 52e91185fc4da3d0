#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes files/ with PyTorch: a small ResNet as a program for PyTorch leaves it behind (its printed
# text, its weights), images, and the logits that PyTorch computes for them. recipes.sh reads them.
import os

import numpy
import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, (inner, outer) in enumerate(((4, 4), (4, 6), (6, 8), (8, 8))):
            stride = 1 if i == 0 else 2
            setattr(self, "layer%d" % (i + 1), nn.Sequential(BasicBlock(inner, outer, stride)))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


torch.manual_seed(3)
model = ResNet()
with torch.no_grad():
    for _ in range(20):  # running statistics that are not those of the beginning
        model(torch.randn(8, 3, 32, 32) * 0.5 + 0.5)
images = torch.rand(2, 3, 32, 32)
model.eval()
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "files"))
with open("resnet.txt", "w") as file:
    print(model, file=file)
torch.save(model.state_dict(), "resnet.pth")
numpy.save("images.npy", images.numpy())
with torch.no_grad():
    numpy.save("logits.npy", model(images).numpy())
    print(model(images))
