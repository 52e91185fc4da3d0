# SPDX-License-Identifier: MIT
#
# The operators of opinfo.py by PyTorch's names, and the operators that it treats specially.
import glob
import os

from pytorch_operators_index import INDEX
from pytorch_operators_nn import IN_DIMS, NETWORKS

# A row has PyTorch's name, our operator, and the parameters of PyTorch's function in their order. A
# line that begins with a space continues the row. A letter or digit after `:` says what a parameter
# is:
#
#   T  a tensor                S  a tensor or a number        O  a tensor or none
#   L  tensors                 d  dims                        i  whole numbers
#   1, 2, 3  so many whole numbers, or one for all of them    t  a dtype
#   n  a number read from a tensor
#   z  an option that Tenon does not have: samples that set it are left out
#   x  ignored
#
# Without `:` the parameter is an option with the same meaning. `=` precedes our name of the option.
TABLE = """
# arithmetic and comparison
div/no_rounding_mode        div input:T other:S rounding_mode
div/floor_rounding          div input:T other:S rounding_mode
div/trunc_rounding          div input:T other:S rounding_mode
true_divide                 div input:T other:S
max/binary                  maximum input:T other:T
min/binary                  minimum input:T other:T
addcmul                     addcmul input:T tensor1:T tensor2:T value
addcdiv                     addcdiv input:T tensor1:T tensor2:T value
lerp                        lerp input:T end:T weight:T
logit                       logit input:T eps
isclose                     isclose input:T other:T rtol atol equal_nan
special.i1                  i1 input:T
nan_to_num                  nan_to_num input:T nan posinf neginf

# activations
leaky_relu                  leaky_relu input:T negative_slope inplace:z
prelu                       prelu input:T weight:T
elu                         elu input:T alpha inplace:z
celu                        celu input:T alpha inplace:z
gelu                        gelu input:T approximate
hardtanh                    hardtanh input:T min_val max_val inplace:z
softshrink                  softshrink input:T lambd
hardshrink                  hardshrink input:T lambd
softplus                    softplus input:T beta threshold
threshold                   threshold input:T threshold value inplace:z
glu                         glu input:T dim
softmax                     softmax input:T dim dtype:t
softmax/with_dtype          softmax input:T dim dtype:t
log_softmax                 log_softmax input:T dim dtype:t
log_softmax/with_dtype      log_softmax input:T dim dtype:t
softmin                     softmin input:T dim dtype:t
softmin/with_dtype          softmin input:T dim dtype:t

# reductions, running sums, sorting
max/reduction_no_dim        amax input:T
min/reduction_no_dim        amin input:T
max/reduction_with_dim      max_dim input:T dim keepdim
min/reduction_with_dim      min_dim input:T dim keepdim
argmax                      argmax input:T dim keepdim
argmin                      argmin input:T dim keepdim
aminmax                     aminmax input:T dim keepdim
logsumexp                   logsumexp input:T dim:d=dims keepdim
count_nonzero               count_nonzero input:T dim:d=dims
nansum                      nansum input:T dim:d=dims keepdim dtype:t
nanmean                     nanmean input:T dim:d=dims keepdim dtype:t
norm                        norm input:T p dim:d=dims keepdim dtype:t
norm/fro                    norm input:T p dim:d=dims keepdim dtype:t
norm/inf                    norm input:T p dim:d=dims keepdim dtype:t
linalg.vector_norm          linalg_vector_norm input:T ord dim:d=dims keepdim dtype:t
renorm                      renorm input:T p dim maxnorm
quantile                    quantile input:T q:S dim keepdim interpolation
nanquantile                 nanquantile input:T q:S dim keepdim interpolation
kthvalue                    kthvalue input:T k dim keepdim
mode                        mode input:T dim keepdim
cumsum                      cumsum input:T dim dtype:t
cumprod                     cumprod input:T dim dtype:t
cummax                      cummax input:T dim
cummin                      cummin input:T dim
logcumsumexp                logcumsumexp input:T dim
sort                        sort input:T dim descending stable:x
topk                        topk input:T k dim largest sorted:x
cov                         cov input:T correction fweights:O aweights:O

# shapes
view                        view input:T shape:i
reshape                     reshape input:T shape:i
flatten                     flatten input:T start_dim end_dim
permute                     permute input:T dims:i
transpose                   transpose input:T dim0 dim1
expand                      expand input:T shape:i
sum_to_size                 sum_to input:T shape:i
unsqueeze                   unsqueeze input:T dim
squeeze                     squeeze input:T dim:d=dims
squeeze/multiple            squeeze input:T dim:d=dims
narrow                      narrow input:T dim start:n length
select                      select input:T dim index
slice                       slice input:T dim start end step
diagonal                    diagonal input:T offset dim1 dim2
unfold                      unfold input:T dim size=window step
cat                         cat input:L dim
stack                       stack input:L dim
repeat                      repeat input:T times:i
flip                        flip input:T dims:i
roll                        roll input:T shifts:i dims:i
tril                        tril input:T diagonal
triu                        triu input:T diagonal
im2col                      im2col input:T kernel_size:2=kernel dilation:2 padding:2 stride:2
clone                       clone input:T memory_format:z
fill                        fill input:T value:n

# indices and masks
gather                      gather input:T dim index:T sparse_grad:z
scatter                     scatter input:T dim index:T src:T
scatter_add                 scatter_add input:T dim index:T src:T
index_select                index_select input:T dim index:T
index_add                   index_add input:T dim index:T source:T alpha
masked_select               masked_select input:T mask:T
masked_fill                 masked_fill input:T mask:T value:n
embedding                   embedding input:T index:T padding_idx max_norm:z norm_type:z
                            scale_grad_by_freq sparse:z
one_hot                     one_hot input:T num_classes=classes

# products and linear algebra
mm                          matmul input:T other:T
linear                      linear input:T weight:T bias:T
addmm                       addmm input:T mat1:T mat2:T beta alpha
addmm/decomposed            addmm input:T mat1:T mat2:T beta alpha
baddbmm                     baddbmm input:T batch1:T batch2:T beta alpha
bilinear                    bilinear input:T input2:T weight:T bias:T
einsum                      einsum input:L equation
cross                       cross input:T other:T dim
linalg.cross                linalg_cross input:T other:T dim
kron                        kron input:T other:T
linalg.cholesky             linalg_cholesky input:T upper
linalg.solve                linalg_solve input:T other:T left
linalg.inv                  linalg_inv input:T
inverse                     linalg_inv input:T
linalg.det                  linalg_det input:T
det                         linalg_det input:T
linalg.slogdet              linalg_slogdet input:T
linalg.qr                   linalg_qr input:T mode
linalg.matrix_norm          linalg_matrix_norm input:T ord dim:d=dims keepdim dtype:t
matrix_exp                  linalg_matrix_exp input:T
linalg.matrix_exp           linalg_matrix_exp input:T
linalg.pinv                 linalg_pinv input:T rcond=rtol hermitian
linalg.pinv/hermitian       linalg_pinv input:T rcond=rtol hermitian
linalg.householder_product  linalg_householder_product input:T tau:T
linalg.eigh                 linalg_eigh input:T UPLO=uplo
linalg.solve_triangular     linalg_solve_triangular input:T other:T upper left unitriangular

# Fourier transforms
stft                        stft input:T window:O n_fft hop_length win_length center pad_mode
                            normalized onesided return_complex align_to_window
istft                       istft input:T window:O n_fft hop_length win_length center normalized
                            onesided length return_complex
"""

MAP = {}


def rows(table):
    """{PyTorch's name: the rest of its row} of a table."""
    found = []
    for line in table.split("\n"):
        if line.startswith(" "):
            found[-1] += line.split()
        elif line and not line.startswith("#"):
            found.append(line.split())
    return {name: " ".join(rest) for name, *rest in found}


def add_plain(folder):
    """Adds operators of one tensor without options, which have the same name in PyTorch."""
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for block in open(path).read().split("\n\n"):
            words = [line.split() for line in block.split("\n") if line.strip()]
            kinds = [w[0] for w in words]
            flags = [flag for w in words if w[0] == "flags" for flag in w]
            if kinds.count("in") != 1 or {"arg", "opt"} & set(kinds) or "random" in flags:
                continue
            for name in next(w for w in words if w[0] == "op")[1:]:
                if name != "copy":
                    MAP.setdefault(name, name + " input:T inplace:z")


for name in ("add", "sub"):
    MAP[name] = name + " input:T other:S alpha"
for name in """
    mul maximum minimum remainder fmod pow atan2 eq ne lt le gt ge bitwise_and bitwise_or
    bitwise_xor logical_and logical_or logical_xor hypot copysign fmax fmin xlogy logaddexp
    logaddexp2 heaviside ldexp nextafter igamma igammac gcd lcm bitwise_left_shift
    bitwise_right_shift complex matmul bmm outer dot mv
""".split():
    MAP[name] = name + " input:S other:S"
for name in "amax amin all any".split():
    MAP[name] = name + " input:T dim:d=dims keepdim"
for name in "sum mean prod".split():
    MAP[name] = name + " input:T dim:d=dims keepdim dtype:t"
for name in ("constant", "reflect", "replicate", "circular", "replicate_negative"):
    MAP["pad/" + name] = "pad input:T pad:i=sizes mode value"
for name in "fft ifft rfft irfft hfft ihfft".split():
    MAP["fft." + name] = "fft_%s input:T n dim norm" % name
    for kind in "2n":
        MAP["fft.%s%s" % (name, kind)] = "fft_%s%s input:T s:i dim:d=dims norm" % (name, kind)
for name in ("fftshift", "ifftshift"):
    MAP["fft." + name] = "fft_%s input:T dim:d=dims" % name
for n in range(5):
    MAP["polygamma/polygamma_n_%d" % n] = "polygamma input:T n"
MAP.update(rows(TABLE))
MAP.update(rows(NETWORKS.replace("OLD", "size_average:z reduce:z")))
MAP.update(rows(INDEX))
for n in "123":
    MAP.update(rows(IN_DIMS.replace("#", n)))

RENAMED = {"nn.functional.unfold": "im2col"}
# Where PyTorch's own result counts: what jumps, and what is made of options alone.
AS_IT_IS = {
    "div/floor_rounding",
    "div/trunc_rounding",
    "remainder",
    "fmod",
    "fill",
    "cov",
    "quantile",
    "nanquantile",
}
JUMPS = {"relu6", "elu", "selu", "celu"}
JUMPS |= {"hardtanh", "hardshrink", "softshrink", "hardsigmoid", "hardswish"}
# PyTorch computes these constants in float32 for float64, too.
SINGLE = {"hardsigmoid", "celu"}
# PyTorch adds 1e-12 to what its second derivative divides by.
SHIFTED = {"binary_cross_entropy"}
# Of equal elements, PyTorch does not say whose index it gives: only the values are compared, and
# gradients where few are equal.
ANY_INDEX = {"topk", "max_dim", "min_dim", "kthvalue", "median_dim", "nanmedian_dim"}
ANY_INDEX |= {"mode", "linalg_eigh"}
