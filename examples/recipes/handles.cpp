// SPDX-License-Identifier: MIT
//
// Tenon in C++17: handles that drop their objects, and exceptions in place of statuses.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>
#include <tenon/tenon.h>

namespace tn {

struct Error : std::runtime_error {
    explicit Error(const tn_error &e) : std::runtime_error(e.message), code(e.code) {}
    tn_status code;
};

// Throws the first failure of this thread, and clears it.
[[noreturn]] inline void raise()
{
    tn_error error;
    tn_error_take(&error);
    throw Error(error);
}

inline void check(tn_status status)
{
    if (status != TN_OK)
        raise();
}

template <typename T> T *check(T *object)
{
    if (object == nullptr)
        raise();
    return object;
}

template <auto drop> struct Drop {
    template <typename T> void operator()(T *object) const { drop(object); }
};
using Module = std::unique_ptr<tn_module, Drop<tn_module_drop>>;
using Optimizer = std::unique_ptr<tn_optimizer, Drop<tn_optimizer_drop>>;
using Tensor = std::unique_ptr<tn_tensor, Drop<tn_tensor_drop>>;

// The tensors that operators return inside belong to it.
class Scope {
    uint64_t number = tn_scope_begin();

public:
    Scope() = default;
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() { tn_scope_end(number); }
};

// A reference that outlives the scope.
inline Tensor keep(tn_tensor *tensor) { return Tensor(check(tn_keep(check(tensor)))); }

template <typename... Arguments> Module module(const char *format, Arguments... arguments)
{
    return Module(check(tn_module_new(format, arguments...)));
}

} // namespace tn

static tn::Tensor train(tn_module *net, int steps)
{
    const std::vector<float> xs = { 0, 0, 0, 1, 1, 0, 1, 1 };
    const std::vector<int64_t> ys = { 0, 1, 1, 0 };
    tn::Optimizer optimizer(tn::check(tn_optimizer_new(net, "Adam(lr=%g)", 0.05)));
    tn::Tensor loss;

    for (int step = 0; step < steps; step++) {
        tn::Scope scope;
        tn_tensor *x = tn_tensor_from(xs.data(), TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y = tn_tensor_from(ys.data(), TN_I64, TN_SHAPE(4));
        loss = tn::keep(tn_cross_entropy(tn_module_call(net, x), y));
        tn::check(tn_module_zero_grad(net));
        tn::check(tn_backward(loss.get()));
        tn::check(tn_optimizer_step(optimizer.get()));
        if (step == 0)
            std::printf("loss before %.4f\n", tn_item(loss.get()));
    }
    return loss;
}

int main()
{
    try {
        tn_random_seed(1);
        tn::Module net = tn::module("Sequential(Linear(2, %d), Tanh(), Linear(%d, 2))", 8, 8);
        tn::Tensor loss = train(net.get(), 100);
        std::printf("loss after  %.4f\n", tn_item(loss.get()));
        try {
            tn::Scope scope;
            tn::check(tn_module_call(net.get(), tn_ones(TN_SHAPE(4, 3))));
        } catch (const tn::Error &e) {
            std::printf("%s: %s\n", tn_status_name(e.code), e.what());
        }
        tn::check(tn_module_save(net.get(), "xor.safetensors"));
    } catch (const tn::Error &e) {
        std::fprintf(stderr, "handles: %s\n", e.what());
        return 1;
    }
}
