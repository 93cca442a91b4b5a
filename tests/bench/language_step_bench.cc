// A whole training step of a language model (AdamW) against the products of
// its linear operations and of its head alone (oneDNN's, forward and both gradients; attention's
// products are not counted), in turns. Processor seconds: run it with OMP_NUM_THREADS=1.
//
//   bench_language_step llama|gpt2|bert|bert_dropout|bert_pretraining [--bf16] [--rounds N]
//   [--profile] [--print_plan]
//
// The last line: "step SECONDS products SECONDS loss LOSS", medians of the rounds.
// Links: train backend_cpu
// Libraries: DNNL::dnnl OpenMP::OpenMP_CXX
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>

#include "tensor/host.h"
#include "tests/bench/language_step.h"
#include "tests/bench/step_options.h"
#include "tests/bench/times.h"

namespace fleet::bench {
namespace {

struct Options : StepOptions {
  std::string model;
};

Options parse(int argc, char** argv) {
  Options options{{.rounds = 3}, {}};
  for (int i = 1; i < argc; ++i) {
    if (options.take(argc, argv, &i)) continue;
    if (argv[i][0] != '-' && options.model.empty()) {
      options.model = argv[i];
    } else {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --bf16, --rounds N, --profile and --print_plan");
    }
  }
  return options;
}

// z [rows, columns] = x [rows, depth] y [depth, columns], each plain or transposed in memory.
class Product {
 public:
  Product(const dnnl::engine& engine, dnnl::memory::data_type type, int64_t rows, int64_t depth,
          int64_t columns, bool transposed_x, bool transposed_y) {
    using Tag = dnnl::memory::format_tag;
    const dnnl::memory::desc x({rows, depth}, type, transposed_x ? Tag::ba : Tag::ab);
    const dnnl::memory::desc y({depth, columns}, type, transposed_y ? Tag::ba : Tag::ab);
    const dnnl::memory::desc z({rows, columns}, type, Tag::ab);
    product_ = dnnl::matmul({{x, y, z}, engine});
    arguments_ = {{DNNL_ARG_SRC, filled(x, engine)},
                  {DNNL_ARG_WEIGHTS, filled(y, engine)},
                  {DNNL_ARG_DST, dnnl::memory(z, engine)}};
  }
  void run(dnnl::stream& stream) { product_.execute(stream, arguments_); }

 private:
  static dnnl::memory filled(const dnnl::memory::desc& desc, const dnnl::engine& engine) {
    dnnl::memory memory(desc, engine);
    // Neither zeros nor denormals: 0x3c3c3c3c is 0.0115, 0x3c3c 0.0115 in bfloat16.
    std::memset(memory.get_data_handle(), 0x3c, desc.get_size());
    return memory;
  }
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Those of one step. Layers of the same sizes share memory.
class Products {
 public:
  Products(const LanguageModelSizes& sizes, bool bf16)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), layers_(sizes.layers) {
    const auto type = bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const int64_t rows = sizes.batch * sizes.length;
    for (const auto& [outputs, inputs] : sizes.linear) add(layer_, type, rows, outputs, inputs);
    if (sizes.head_rows > 0) add(head_, type, sizes.head_rows, sizes.vocabulary, sizes.hidden);
  }

  void run() {
    for (int64_t i = 0; i < layers_; ++i) {
      for (Product& product : layer_) product.run(stream_);
    }
    for (Product& product : head_) product.run(stream_);
    stream_.wait();
  }

 private:
  void add(std::vector<Product>& to, dnnl::memory::data_type type, int64_t rows, int64_t outputs,
           int64_t inputs) {
    to.emplace_back(engine_, type, rows, inputs, outputs, false, true);
    to.emplace_back(engine_, type, rows, outputs, inputs, false, false);
    to.emplace_back(engine_, type, outputs, rows, inputs, true, false);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  int64_t layers_;
  std::vector<Product> layer_, head_;
};

template <typename Body>
double seconds_of(const Body& body) {
  const double begin = processor_seconds();
  body();
  return processor_seconds() - begin;
}

int run(const Options& options) {
  if (!options.can_run()) return 0;
  HostDevice device;
  LanguageStep step(device, options.model, options.bf16);
  if (options.print_plan) std::fputs(step.executor().plan().text().c_str(), stdout);
  Products products(language_model_sizes(options.model), options.bf16);
  step.run();
  products.run();
  step.executor().set_profiling(options.profile);
  std::vector<double> ours, bound;
  for (int i = 0; i < options.rounds; ++i) {
    ours.push_back(seconds_of([&] { step.run(); }));
    bound.push_back(seconds_of([&] { products.run(); }));
  }
  if (options.profile) std::fputs(step.executor().profile().c_str(), stdout);
  std::printf("step %.3f products %.3f loss %.4f\n", median(ours), median(bound), step.loss());
  return 0;
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  try {
    return fleet::bench::run(fleet::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_language_step: %s\n", error.what());
    return 1;
  }
}
