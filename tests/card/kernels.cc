// CPU kernels of the vendor's operators that a training step needs, as one rank computes them.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

namespace {

using Int64 = decltype(TensorShape().dim_size(0));  // TensorFlow's int64, another type in each version

Status Ok() { return Status(); }  // Status::OK() in old versions, absl's in new ones

// --- shapes ------------------------------------------------------------------
void UnknownShapes(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
}

void SetOutput(InferenceContext* c, const char* output, ShapeHandle shape) {
  std::vector<ShapeHandle> shapes;
  if (c->output(output, &shapes).ok()) {
    (void)c->set_output(output, std::vector<ShapeHandle>(shapes.size(), shape));
  }
}

// The shape of an input, its first dimension times or divided by an attribute.
Status CopyShape(InferenceContext* c, const char* input, const char* output, const char* attribute, bool times) {
  std::vector<ShapeHandle> shapes;
  TF_RETURN_IF_ERROR(c->input(input, &shapes));
  if (*attribute && c->RankKnown(shapes[0]) && c->Rank(shapes[0]) > 0) {
    Int64 factor;
    TF_RETURN_IF_ERROR(c->GetAttr(attribute, &factor));
    DimensionHandle rows;
    if (times) {
      TF_RETURN_IF_ERROR(c->Multiply(c->Dim(shapes[0], 0), factor, &rows));
    } else {
      TF_RETURN_IF_ERROR(c->Divide(c->Dim(shapes[0], 0), factor, true, &rows));
    }
    TF_RETURN_IF_ERROR(c->ReplaceDim(shapes[0], 0, rows, &shapes[0]));
  }
  return c->set_output(output, shapes);
}

Status ShapeOfAttribute(InferenceContext* c, const char* attribute, const char* output) {
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr(attribute, &shape));
  ShapeHandle handle;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &handle));
  SetOutput(c, output, handle);
  return Ok();
}

// --- operators without a result, and those that return what they get -------------
class Nothing : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};

class Copy : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* c) override {
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(i));
  }
};

class Zeros : public OpKernel {  // eight of them: the overflow registers, which a CPU does not have
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* c) override {
    Tensor* out;
    OP_REQUIRES_OK(c, c->allocate_output(0, TensorShape({8}), &out));
    auto data = out->tensor_data();
    std::memset(const_cast<char*>(data.data()), 0, data.size());
  }
};

// --- collectives of one rank -----------------------------------------------------
class AllGather : public OpKernel {  // rank_size times the rows of this rank
 public:
  explicit AllGather(OpKernelConstruction* c) : OpKernel(c) { OP_REQUIRES_OK(c, c->GetAttr("rank_size", &rank_size_)); }
  void Compute(OpKernelContext* c) override {
    const Tensor& in = c->input(0);
    OP_REQUIRES(c, in.dims() > 0, errors::InvalidArgument("HcomAllGather needs a dimension, got a scalar"));
    TensorShape shape = in.shape();
    shape.set_dim(0, shape.dim_size(0) * rank_size_);
    Tensor* out;
    OP_REQUIRES_OK(c, c->allocate_output(0, shape, &out));
    auto from = in.tensor_data();
    char* to = const_cast<char*>(out->tensor_data().data());
    for (Int64 i = 0; i < rank_size_; ++i) std::memcpy(to + i * from.size(), from.data(), from.size());
  }

 private:
  Int64 rank_size_;
};

class ReduceScatter : public OpKernel {  // the first of rank_size parts
 public:
  explicit ReduceScatter(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("rank_size", &rank_size_));
  }
  void Compute(OpKernelContext* c) override {
    const Tensor& in = c->input(0);
    OP_REQUIRES(c, in.dims() > 0 && in.dim_size(0) % rank_size_ == 0,
                errors::InvalidArgument("HcomReduceScatter cannot divide the rows by ", rank_size_));
    c->set_output(0, in.Slice(0, in.dim_size(0) / rank_size_));
  }

 private:
  Int64 rank_size_;
};

#include "all_reduce.h"

// --- dropout ---------------------------------------------------------------------
// A bit for each element, in whole blocks of 128 bits. DropOutGenMaskV4: a bool for each.
template <typename Shape, typename Prob, bool kBits>
class GenMask : public OpKernel {
 public:
  explicit GenMask(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("seed", &seed_));
    OP_REQUIRES_OK(c, c->GetAttr("seed2", &seed2_));
    random_.seed(seed_ || seed2_ ? seed_ * 7919 + seed2_ : std::random_device()());
  }
  void Compute(OpKernelContext* c) override {
    auto dims = c->input(0).flat<Shape>();
    const double keep = static_cast<double>(static_cast<float>(c->input(1).flat<Prob>()(0)));
    Int64 size = 1;
    TensorShape shape;
    for (Int64 i = 0; i < dims.size(); ++i) {
      size *= dims(i);
      shape.AddDim(dims(i));
    }
    const Int64 bytes = (size + 127) / 128 * 16;
    Tensor* out;
    OP_REQUIRES_OK(c, c->allocate_output(0, kBits ? TensorShape({bytes}) : shape, &out));
    auto* mask = reinterpret_cast<unsigned char*>(const_cast<char*>(out->tensor_data().data()));
    if (kBits) std::memset(mask, 0, bytes);
    std::bernoulli_distribution kept(keep);
    mutex_lock lock(mutex_);
    for (Int64 i = 0; i < size; ++i) {
      const bool bit = kept(random_);
      if (kBits) {
        mask[i / 8] |= bit << (i % 8);
      } else {
        mask[i] = bit;
      }
    }
  }

 private:
  Int64 seed_, seed2_;
  mutex mutex_;
  std::mt19937_64 random_;
};

template <typename T, bool kBits>
class DoMask : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* c) override {
    auto x = c->input(0).flat<T>();
    auto mask = c->input(1).flat<uint8>();
    const float keep = static_cast<float>(c->input(2).flat<T>()(0));
    OP_REQUIRES(c, mask.size() * (kBits ? 8 : 1) >= x.size(),
                errors::InvalidArgument("the mask has ", mask.size(), " bytes for ", x.size(), " elements"));
    Tensor* out;
    OP_REQUIRES_OK(c, c->allocate_output(0, c->input(0).shape(), &out));
    auto y = out->flat<T>();
    for (Int64 i = 0; i < x.size(); ++i) {
      const bool kept = kBits ? mask(i / 8) >> (i % 8) & 1 : mask(i) != 0;
      y(i) = static_cast<T>(kept ? static_cast<float>(x(i)) / keep : 0.0f);
    }
  }
};

// --- gelu ------------------------------------------------------------------------
// fast: x / (1 + exp(-1.702 x)); else x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
double Gelu(double x, bool fast) {
  if (fast) return x / (1 + std::exp(-1.702 * x));
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

double GeluSlope(double x, bool fast) {
  if (fast) {
    const double s = 1 / (1 + std::exp(-1.702 * x));
    return s + 1.702 * x * s * (1 - s);
  }
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

template <typename T, bool kFast, bool kGradient>  // the gradient has (dy, x), the value (x)
class GeluKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* c) override {
    const Tensor& in = c->input(kGradient ? 1 : 0);
    Tensor* out;
    OP_REQUIRES_OK(c, c->allocate_output(0, in.shape(), &out));
    auto x = in.flat<T>();
    auto y = out->flat<T>();
    for (Int64 i = 0; i < x.size(); ++i) {
      const double value = static_cast<double>(static_cast<float>(x(i)));
      const double dy = kGradient ? static_cast<double>(static_cast<float>(c->input(0).flat<T>()(i))) : 1;
      y(i) = static_cast<T>(static_cast<float>(kGradient ? dy * GeluSlope(value, kFast) : Gelu(value, kFast)));
    }
  }
};

// --- registrations of the kernels ---------------------------------------------------
#define ON_CPU(op, kernel) REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU), kernel)
ON_CPU("NPUInit", Nothing);
ON_CPU("NPUShutdown", Nothing);
ON_CPU("LogTimeStamp", Nothing);
ON_CPU("OutfeedEnqueueOp", Nothing);
ON_CPU("NpuClearFloatStatusV2", Nothing);
ON_CPU("NpuAllocFloatStatus", Zeros);
ON_CPU("NpuGetFloatStatus", Zeros);
ON_CPU("NpuGetFloatStatusV2", Zeros);
ON_CPU("NpuClearFloatStatus", Zeros);
ON_CPU("HcomAllReduce", AllReduce);
ON_CPU("HcomReduce", Copy);
ON_CPU("HcomBroadcast", Copy);
ON_CPU("HcomAllGather", AllGather);
ON_CPU("HcomReduceScatter", ReduceScatter);

#define GEN_MASK(op, shape, prob, bits)                                                             \
  REGISTER_KERNEL_BUILDER(                                                                          \
      Name(op).Device(DEVICE_CPU).TypeConstraint<shape>("T").TypeConstraint<prob>("S"), GenMask<shape, prob, bits>)
#define GEN_MASKS(shape, prob)                   \
  GEN_MASK("DropOutGenMask", shape, prob, true);   \
  GEN_MASK("DropOutGenMaskV3", shape, prob, true); \
  GEN_MASK("DropOutGenMaskV4", shape, prob, false);
GEN_MASKS(int32, float)
GEN_MASKS(int32, Eigen::half)
GEN_MASKS(Int64, float)
GEN_MASKS(Int64, Eigen::half)

#define OF_TYPE(op, type, ...) \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU).TypeConstraint<type>("T"), __VA_ARGS__)
#define FLOATS(type)                                    \
  OF_TYPE("DropOutDoMask", type, DoMask<type, true>);    \
  OF_TYPE("DropOutDoMaskV3", type, DoMask<type, true>); \
  OF_TYPE("Gelu", type, GeluKernel<type, false, false>);     \
  OF_TYPE("GeluGrad", type, GeluKernel<type, false, true>);  \
  OF_TYPE("FastGelu", type, GeluKernel<type, true, false>);  \
  OF_TYPE("FastGeluV2", type, GeluKernel<type, true, false>); \
  OF_TYPE("FastGeluGrad", type, GeluKernel<type, true, true>);
FLOATS(float)
FLOATS(Eigen::half)

}  // namespace
