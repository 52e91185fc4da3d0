# SPDX-License-Identifier: MIT
"""Tenon from Python: a layer of the script's own, training, errors, a file."""

import tenon
from tenon import nn, optim


class Scaled(tenon.Layer):
    features = tenon.option(int, "size of the last dimension")

    def build(self):
        self.scale = tenon.parameter(tenon.ones(self.features))

    def forward(self, x):
        return x * self.scale


tenon.manual_seed(1)
net = nn.Sequential(nn.Linear(2, 8), Scaled(8), nn.Tanh(), nn.Linear(8, 2))
print(net)

x = tenon.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = tenon.tensor([0, 1, 1, 0])
optimizer = optim.Adam(net, lr=0.05)
for step in range(100):
    loss = tenon.cross_entropy(net(x), y)
    if step == 0:
        print(f"loss before {loss.item():.4f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss after  {loss.item():.4f}")

try:
    net(tenon.ones(4, 3))
except tenon.TenonError as error:
    print(f"{type(error).__name__}: {error}")

net.save("xor.safetensors")
other = tenon.Module("Sequential(Linear(2, 8), Scaled(8), Tanh(), Linear(8, 2))")
other.load("xor.safetensors")
with tenon.no_grad():
    print("the same:", other(x).tolist() == net(x).tolist())
    print("classes:", other(x).argmax(1).tolist())
