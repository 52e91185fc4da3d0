/* SPDX-License-Identifier: MIT
 *
 * Steps of recurrent networks: the functions of the gates and their gradients. */
#include "math/float32.h"
#include "math/float64.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

/* 1 / (1 + e^-x). Beyond 87, where e^-x would leave the normal range, x counts as 87: the result is
 * 1, or less than 2e-38. NaN stays NaN. */
TN__INTO_LOOPS float gate_f32(float x)
{
    float in = x < -87.0f ? -87.0f : x;
    return tn__near_sigmoid_f32(in > 87.0f ? 87.0f : in);
}
TN__INTO_LOOPS double gate_f64(double x)
{
    return tn__sigmoid64(x);
}
#define bend_f32 tn__near_tanh_f32
#define bend_f64 tn__tanh64

#define TEMPLATE "simd/rnn_template.h"
#include "base/for_floats.h"

#define BOTH(name)                                                                                 \
    {                                                                                              \
        name##_f32, name##_f64                                                                     \
    }
const struct tn__simd_rnn TN__SIMD_TABLE(rnn) = {
    .forward = {
        [TN__RNN_TANH] = BOTH(tanh_step),
        [TN__RNN_RELU] = BOTH(relu_step),
        [TN__RNN_LSTM] = BOTH(lstm_step),
        [TN__RNN_GRU] = BOTH(gru_step),
    },
    .backward = {
        [TN__RNN_TANH] = BOTH(tanh_back),
        [TN__RNN_RELU] = BOTH(relu_back),
        [TN__RNN_LSTM] = BOTH(lstm_back),
        [TN__RNN_GRU] = BOTH(gru_back),
    },
};
