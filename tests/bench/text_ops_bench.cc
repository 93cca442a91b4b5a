// Speed of the kernels of text models' operations against that of memory: bytes read and written
// a second, against a copy of the same size by all threads in the same run. float32 and bfloat16.
// Links: ops optim passes exec backend_cpu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "tensor/float16.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr int64_t kBatch = 8, kLength = 1024, kHidden = 1024;
constexpr int64_t kVocabulary = 50257, kHeads = 16;
const Shape kStream = {kBatch, kLength, kHidden};  // 32 MiB in float32
constexpr int kRuns = 9;

double median_seconds(const std::function<void()>& body) {
  body();
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

// A program of one operation, with inputs that are states or feeds, in one type.
class Bench {
 public:
  explicit Bench(DType dtype) : dtype_(dtype), section_(program_.add_section("main", {})) {}

  VarId tensor(const Shape& shape) { return state(shape, dtype_); }
  VarId row(int64_t size) { return state({size}, DType::kFloat32); }
  VarId table(int64_t pairs) { return state({kBatch, kLength, pairs}, DType::kFloat32); }
  // Text has few frequent ids and many rare ones.
  VarId ids(int64_t rows) {
    ids_ = program_.feed("ids", DType::kInt64, {kBatch, kLength});
    uint64_t state = 1;
    for (int64_t i = 0; i < kBatch * kLength; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double unit = static_cast<double>(state >> 11) * 0x1p-53;
      id_values_.push_back(static_cast<int64_t>(unit * unit * unit * static_cast<double>(rows)));
    }
    return ids_;
  }
  void emit(const std::string& type, const std::vector<VarId>& inputs,
            const Attributes& attributes = {}) {
    outputs_ = program_.emit(section_, type, inputs, attributes);
  }

  // Of reading each input and writing each output once, and of the whole.
  struct Result {
    double bytes, seconds;
  };
  // read: bytes to count in place of those of the inputs; < 0: all.
  Result measure(HostDevice& device, double read) {
    double bytes = 0;
    for (const VarId id : program_.ops().back().inputs) bytes += read < 0 ? bytes_of(id) : 0;
    for (const VarId id : outputs_) bytes += bytes_of(id);
    Executor executor(plan_program(program_, outputs_), device, nullptr);
    executor.initialize(1);
    if (ids_ != kNoVar) executor.write(ids_, id_values_);
    return {bytes + std::max(read, 0.0), median_seconds([&] { executor.run({}); })};
  }

 private:
  VarId state(const Shape& shape, DType dtype) {
    return program_.state("x" + std::to_string(program_.var_count()), shape,
                          {.kind = Init::kUniform, .a = -1, .b = 1}, dtype);
  }
  double bytes_of(VarId id) const {
    const Var& var = program_.var(id);
    return static_cast<double>(var.shape.elements()) * static_cast<double>(size_of(var.dtype));
  }

  const DType dtype_;
  Program program_;
  const SectionId section_;
  VarId ids_ = kNoVar;
  std::vector<int64_t> id_values_;
  std::vector<VarId> outputs_;
};

struct Case {
  const char* name;
  std::function<void(Bench&)> build;
  bool reads_rows = false;  // of the weight, those of the ids only
};

const std::vector<Case>& cases() {
  static const Shape wide = {kBatch, kLength, 2 * kHidden};
  static const Shape heads = {kBatch, kLength, kHeads, kHidden / kHeads};
  static const int64_t rows = kBatch * kLength;
  static const std::vector<Case> all = {
      {"layer_norm",
       [](Bench& b) {
         b.emit("layer_norm", {b.tensor(kStream), b.row(kHidden), b.row(kHidden)},
                {{"begin_norm_axis", int64_t{2}}});
       }},
      {"layer_norm_grad",
       [](Bench& b) {
         b.emit("layer_norm_grad",
                {b.tensor(kStream), b.row(kHidden), b.row(rows), b.row(rows), b.tensor(kStream),
                 kNoVar},
                {{"begin_norm_axis", int64_t{2}}, {"epsilon", 2.0}});
       }},
      {"add_layer_norm",
       [](Bench& b) {
         b.emit("add_layer_norm",
                {b.tensor(kStream), b.tensor(kStream), b.row(kHidden), b.row(kHidden)});
       }},
      {"rms_norm",
       [](Bench& b) {
         b.emit("rms_norm", {b.tensor(kStream), b.row(kHidden)});
       }},
      {"add_rms_norm",
       [](Bench& b) {
         b.emit("add_rms_norm", {b.tensor(kStream), b.tensor(kStream), b.row(kHidden)});
       }},
      {"rms_norm_grad",
       [](Bench& b) {
         b.emit("rms_norm_grad", {b.tensor(kStream), b.row(kHidden), b.row(rows), b.tensor(kStream),
                                  b.tensor(kStream)});
       }},
      {"gelu", [](Bench& b) { b.emit("gelu", {b.tensor(kStream)}); }},
      {"gelu tanh",
       [](Bench& b) {
         b.emit("gelu", {b.tensor(kStream)}, {{"approximate", true}});
       }},
      {"gelu_grad",
       [](Bench& b) {
         b.emit("gelu_grad", {b.tensor(kStream), b.tensor(kStream)});
       }},
      {"gelu_grad tanh",
       [](Bench& b) {
         b.emit("gelu_grad", {b.tensor(kStream), b.tensor(kStream)}, {{"approximate", true}});
       }},
      {"swiglu", [](Bench& b) { b.emit("swiglu", {b.tensor(wide)}); }},
      {"swiglu_grad",
       [](Bench& b) {
         b.emit("swiglu_grad", {b.tensor(wide), b.tensor(kStream)});
       }},
      {"geglu", [](Bench& b) { b.emit("geglu", {b.tensor(wide)}); }},
      {"rope",
       [](Bench& b) {
         const int64_t pairs = kHidden / kHeads / 2;
         b.emit("rope", {b.tensor(heads), b.table(pairs), b.table(pairs)});
       }},
      {"rope_table",
       [](Bench& b) {
         b.emit("rope_table", {b.ids(kLength)}, {{"dim", int64_t{128}}});
       }},
      {"embedding",
       [](Bench& b) {
         b.emit("embedding", {b.ids(kVocabulary), b.tensor({kVocabulary, kHidden})});
       },
       true},
      {"embedding_grad",
       [](Bench& b) {
         b.emit("embedding_grad", {b.ids(kVocabulary), b.tensor(kStream)}, {{"rows", kVocabulary}});
       }},
  };
  return all;
}

int run() {
  HostDevice device;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const double size = static_cast<double>(size_of(dtype));
    Bench copy(dtype);
    copy.emit("sum", {copy.tensor({4 * kBatch, kLength, kHidden})});
    const Bench::Result best = copy.measure(device, -1);
    const double speed = best.bytes / best.seconds;
    std::printf("%s: copy %.1f GB/s\n%-18s %9s %9s\n", name_of(dtype), speed / 1e9, "operation",
                "ms", "of copy");
    for (const Case& one : cases()) {
      Bench bench(dtype);
      one.build(bench);
      const double read =
          one.reads_rows ? static_cast<double>(kBatch * kLength * kHidden) * size : -1;
      const Bench::Result result = bench.measure(device, read);
      std::printf("%-18s %9.2f %8.2fx\n", one.name, 1e3 * result.seconds,
                  result.bytes / result.seconds / speed);
    }
  }
  return 0;
}

}  // namespace
}  // namespace fleet

int main() { return fleet::run(); }
