# SPDX-License-Identifier: MIT
#
# The operators of opinfo.py by PyTorch's names, and the operators that it treats specially.
import glob
import os

from pytorch_operators_nn import NETWORKS

# Our operator and what the parameters of PyTorch's function are, in their order. After the colon: T a tensor, S a tensor
# or a number, O a tensor or none, L tensors, d dims, i whole numbers, 1, 2 and 3 so many of them (one stands for all), t a
# dtype, n a number read from a tensor, z has to be left out; nothing: an option as it is. After the sign = our name of the option.
MAP = {}


def add_plain(folder):
    """Operators of one tensor without options: PyTorch's have the same name, and need no row here."""
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for block in open(path).read().split("\n\n"):
            words = [line.split() for line in block.split("\n") if line.strip()]
            kinds = [w[0] for w in words]
            flags = [flag for w in words if w[0] == "flags" for flag in w]
            if kinds.count("in") == 1 and not {"arg", "opt"} & set(kinds) and "random" not in flags:
                for name in next(w for w in words if w[0] == "op")[1:]:
                    if name != "copy":
                        MAP.setdefault(name, name + " input:T inplace:z")


for name in ("add", "sub"):
    MAP[name] = name + " input:T other:S alpha"
for name in ("mul maximum minimum remainder fmod pow atan2 eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor logical_and "
             "logical_or logical_xor complex matmul bmm outer dot mv").split():
    MAP[name] = name + " input:S other:S"
for name in "amax amin all any".split():
    MAP[name] = name + " input:T dim:d=dims keepdim"
for name in "sum mean prod".split():
    MAP[name] = name + " input:T dim:d=dims keepdim dtype:t"
for name in ("constant", "reflect", "replicate", "circular", "replicate_negative"):
    MAP["pad/" + name] = "pad input:T pad:i=sizes mode value"
MAP.update({
    "div/no_rounding_mode": "div input:T other:S rounding_mode", "div/floor_rounding": "div input:T other:S rounding_mode",
    "div/trunc_rounding": "div input:T other:S rounding_mode", "true_divide": "div input:T other:S",
    "max/binary": "maximum input:T other:T", "min/binary": "minimum input:T other:T", "mm": "matmul input:T other:T",
    "max/reduction_no_dim": "amax input:T", "min/reduction_no_dim": "amin input:T",
    "leaky_relu": "leaky_relu input:T negative_slope inplace:z", "prelu": "prelu input:T weight:T",
    "elu": "elu input:T alpha inplace:z", "celu": "celu input:T alpha inplace:z", "gelu": "gelu input:T approximate",
    "hardtanh": "hardtanh input:T min_val max_val inplace:z", "softshrink": "softshrink input:T lambd",
    "hardshrink": "hardshrink input:T lambd", "softplus": "softplus input:T beta threshold",
    "threshold": "threshold input:T threshold value inplace:z", "glu": "glu input:T dim",
    "softmax": "softmax input:T dim dtype:t", "softmax/with_dtype": "softmax input:T dim dtype:t",
    "log_softmax": "log_softmax input:T dim dtype:t", "log_softmax/with_dtype": "log_softmax input:T dim dtype:t",
    "softmin": "softmin input:T dim dtype:t", "softmin/with_dtype": "softmin input:T dim dtype:t",
    "addcmul": "addcmul input:T tensor1:T tensor2:T value", "addcdiv": "addcdiv input:T tensor1:T tensor2:T value",
    "nan_to_num": "nan_to_num input:T nan posinf neginf", "masked_fill": "masked_fill input:T mask:T value:n",
    "clone": "clone input:T memory_format:z", "tril": "tril input:T diagonal", "triu": "triu input:T diagonal",
    "one_hot": "one_hot input:T num_classes=classes", "fill": "fill input:T value:n",
    "gather": "gather input:T dim index:T sparse_grad:z", "scatter": "scatter input:T dim index:T src:T",
    "scatter_add": "scatter_add input:T dim index:T src:T", "index_select": "index_select input:T dim index:T",
    "index_add": "index_add input:T dim index:T source:T alpha", "masked_select": "masked_select input:T mask:T",
    "embedding": "embedding input:T index:T padding_idx max_norm:z norm_type:z scale_grad_by_freq:z sparse:z",
    "linear": "linear input:T weight:T bias:T", "addmm": "addmm input:T mat1:T mat2:T beta alpha",
    "addmm/decomposed": "addmm input:T mat1:T mat2:T beta alpha", "baddbmm": "baddbmm input:T batch1:T batch2:T beta alpha",
    "bilinear": "bilinear input:T input2:T weight:T bias:T", "argmax": "argmax input:T dim keepdim",
    "argmin": "argmin input:T dim keepdim", "max/reduction_with_dim": "max_dim input:T dim keepdim",
    "min/reduction_with_dim": "min_dim input:T dim keepdim", "logsumexp": "logsumexp input:T dim:d=dims keepdim",
    "cumsum": "cumsum input:T dim dtype:t", "cumprod": "cumprod input:T dim dtype:t", "sum_to_size": "sum_to input:T shape:i",
    "norm": "norm input:T p dim:d=dims keepdim dtype:t", "norm/fro": "norm input:T p dim:d=dims keepdim dtype:t",
    "norm/inf": "norm input:T p dim:d=dims keepdim dtype:t",
    "linalg.vector_norm": "norm input:T ord=p dim:d=dims keepdim dtype:t", "view": "view input:T shape:i",
    "reshape": "reshape input:T shape:i", "flatten": "flatten input:T start_dim end_dim", "permute": "permute input:T dims:i",
    "transpose": "transpose input:T dim0 dim1", "expand": "expand input:T shape:i", "unsqueeze": "unsqueeze input:T dim",
    "squeeze": "squeeze input:T dim:d=dims", "squeeze/multiple": "squeeze input:T dim:d=dims",
    "narrow": "narrow input:T dim start:n length", "select": "select input:T dim index", "slice": "slice input:T dim start end step",
    "diagonal": "diagonal input:T offset dim1 dim2", "unfold": "unfold input:T dim size=window step", "cat": "cat input:L dim",
    "stack": "stack input:L dim", "repeat": "repeat input:T times:i", "flip": "flip input:T dims:i",
    "roll": "roll input:T shifts:i dims:i", "einsum": "einsum input:L equation",
    "im2col": "im2col input:T kernel_size:2=kernel dilation:2 padding:2 stride:2", "lerp": "lerp input:T end:T weight:T",
    "sort": "sort input:T dim descending stable:x", "topk": "topk input:T k dim largest sorted:x",
})
MAP.update(NETWORKS)
RENAMED = {"nn.functional.unfold": "im2col"}
# Where PyTorch's own result counts: what jumps, and what is made of options alone.
AS_IT_IS = {"div/floor_rounding", "div/trunc_rounding", "remainder", "fmod", "fill"}
JUMPS = {"relu6", "elu", "selu", "celu", "hardtanh", "hardshrink", "softshrink", "hardsigmoid", "hardswish"}
# PyTorch computes these constants in float32 for float64, too.
SINGLE = {"hardsigmoid", "celu"}
# PyTorch adds 1e-12 to what its second derivative divides by.
SHIFTED = {"binary_cross_entropy"}
