# SPDX-License-Identifier: MIT
#
# The rows of pytorch_operators.py for operators that select by index, search and count; the grammar
# is described there.
INDEX = """
index_copy           index_copy input:T dim index:T source:T
index_fill           index_fill input:T dim index:T value:n
masked_scatter       masked_scatter input:T mask:T source:T
take                 take input:T index:T
put                  put input:T index:T source:T accumulate
diag_embed           diag_embed input:T offset dim1 dim2
searchsorted         searchsorted sorted_sequence:T values:S out_int32 right side sorter:O
bucketize            bucketize input:S boundaries:T out_int32 right
bincount             bincount input:T weights:O minlength
histc                histc input:T bins min max
scatter_reduce/sum   scatter_reduce input:T dim index:T src:T reduce include_self
scatter_reduce/prod  scatter_reduce input:T dim index:T src:T reduce include_self
scatter_reduce/mean  scatter_reduce input:T dim index:T src:T reduce include_self
scatter_reduce/amax  scatter_reduce input:T dim index:T src:T reduce include_self
scatter_reduce/amin  scatter_reduce input:T dim index:T src:T reduce include_self
index_reduce/prod    index_reduce input:T dim index:T source:T reduce include_self
index_reduce/mean    index_reduce input:T dim index:T source:T reduce include_self
index_reduce/amax    index_reduce input:T dim index:T source:T reduce include_self
index_reduce/amin    index_reduce input:T dim index:T source:T reduce include_self
"""
