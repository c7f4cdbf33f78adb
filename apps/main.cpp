// tg: results on standard output, progress and errors on standard error, exit status 0 only on success. Here is its command line.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "bench/bench.h"
#include "compile/compile.h"
#include "convert/convert.h"
#include "devices/devices.h"
#include "inspect/inspect.h"
#include "models/models.h"
#include "run/run.h"
#include "simulate/simulate.h"
#include "train/train.h"
#include "tune/tune.h"

namespace tinygrad::apps {

namespace {

/// A training with the options that all have.
CLI::App* add_training(CLI::App& train, const std::string& name, const std::string& about, TrainOptions& o,
                       void (*run)(const TrainOptions&)) {
  CLI::App* command = train.add_subcommand(name, about);
  command->add_option("--seed", o.seed, "Seed of everything random; the same seed gives the same result")->capture_default_str();
  command->add_option("--epochs", o.epochs, "Passes over the training data")->capture_default_str()->check(CLI::Range(1, 100000));
  command->add_option("--png", o.png, "Picture of test images with predictions, mistakes in red; empty: none")->capture_default_str();
  command->add_option("--shards", o.shards, "Parts of each batch; with as many shards the result is the same on any number of devices")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--devices", o.devices, "Devices that share the shards: the default one and those that follow it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--checkpoint", o.checkpoint,
                   "Save to this folder after each epoch, and go on behind the last one that is there; the devices may be others then")
      ->type_name("FOLDER");
  command->add_flag("--json", o.json, "Print one JSON object a line; the last has test_accuracy");
  command->callback([&o, run] { run(o); });
  return command;
}

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "Train a network and measure it on data it has not seen");
  train->require_subcommand(1);

  static TrainOptions digits{.epochs = 30, .png = "digits.png"}, mnist{.epochs = 1, .png = "mnist.png"};
  add_training(*train, "digits", "A convolutional network on 1,797 handwritten digits of 8x8 pixels", digits, train_digits)
      ->add_option("--data", digits.data, "CSV file of the digits, plain or .gz (default: the one that comes with tg)");
  CLI::App* command = add_training(*train, "mnist", "A convolutional network on MNIST or Fashion-MNIST", mnist, train_mnist);
  command->add_flag("--fashion", mnist.fashion, "Fashion-MNIST instead of MNIST");
  command->add_option("--data", mnist.data,
                      "Folder of the four IDX files, plain or .gz (default: they are downloaded into the cache folder)");
}

void add_compile(CLI::App& app) {
  static CompileOptions o;
  CLI::App* command = app.add_subcommand("compile", "Schedule, lower and render a model without running it, and print how long that took");
  command->footer(
      "Inference has batch 1; training is a step of batch 4 by SGD with momentum, of mnist-train of batch 512 by Adam; GPT-2 reads 128\n"
      "tokens. Seconds are those of the three stages: building the graph and starting the program do not count.");
  command->add_option("MODEL", o.model, "What to compile")->required()->check(CLI::IsMember(model_names()));
  command->add_option("--device", o.device, "Device to compile for, NAME[:RENDERER[:ARCH]]")->capture_default_str();
  command->add_flag("--steps", o.steps, "Also print what each step of scheduling and lowering took; measuring slows them a little");
  command->add_flag("--rules", o.rules, "Also print what each rewrite rule took, and how often it was tried and applied; slows the stages");
  command->add_option("--sources", o.sources, "Write the source of each unique kernel to a file in this folder")->type_name("FOLDER");
  command->add_flag("--json", o.json,
                    "Print one JSON object: model, kernels, unique_kernels, bytes, stages, seconds, and steps and rules if asked");
  command->callback([] { compile(o); });
}

void add_simulate(CLI::App& app) {
  static SimulateArgs o;
  CLI::App* command = app.add_subcommand("simulate", "Say what a step of a model would take on many ranks, of which none is needed");
  command->footer(
      "Each rank has a batch of its own. What one rank computes is run here; what goes between ranks is counted, and takes what the\n"
      "network says: a JSON file such as {\"ranks_per_node\": 8, \"within\": {\"latency_us\": 3, \"gb_s\": 100}, \"between\":\n"
      "{\"latency_us\": 14, \"gb_s\": 12.5}}. Without a file each rank is a node, with links as \"between\" has here.");
  command->add_option("MODEL", o.model, "What to compute")->required()->check(CLI::IsMember(model_names()));
  command->add_option("--mesh", o.ranks, "How many ranks")->required()->check(CLI::Range(2, 4096));
  command->add_option("--network", o.network, "Latency and speed of links")->type_name("FILE");
  command->add_flag("--fully-sharded", o.fully_sharded, "Parts of weights and state on each rank, in place of copies");
  command->add_flag("--measure", o.measure, "Run it instead, started by mpirun with as many ranks, to compare with");
  command->add_flag("--json", o.json, "Print one JSON object: step_s, bytes_per_link, memory_per_rank and more");
  command->callback([] { simulate_model(o); });
}

void add_bench(CLI::App& app) {
  static BenchOptions o;
  CLI::App* command = app.add_subcommand("bench", "Time a kernel beside what the machine can do, and check it against float64");
  command->footer(kernel_help());
  command->add_option("KERNEL", o.what.kernel, "What to measure")->required()->check(CLI::IsMember(kernel_names()));
  command->add_option("--size", o.what.size, "Its sizes, by commas")->delimiter(',');
  command->add_option("--dtype", o.what.dtype, "float32 (default), float16, bfloat16; of matmul also int8: uint8 by int8 into int32");
  command->add_option("--op", o.what.op, "Of elementwise: " + CLI::detail::join(elementwise_names(), ", "));
  command->add_option("--batch", o.what.batch, "Of matmul, conv and attention");
  command->add_option("--stride", o.what.stride, "Of conv");
  command->add_option("--groups", o.what.groups, "Of conv; as many as channels: depthwise");
  command->add_option("--axis", o.what.axis, "Of softmax: 1 (default), or 0 over columns");
  command->add_option("--order", o.what.order, "Of transpose: the axes as the result has them")->delimiter(',');
  command->add_flag("--causal", o.what.causal, "Of attention: no token sees later ones");
  command->add_flag("--backward", o.what.backward, "Of conv and attention: also the gradients of their inputs");
  command->add_option("--keys", o.what.keys, "Of attention: how many tokens are attended to; as many as there are by default");
  command->add_option("--kv-heads", o.what.kv_heads, "Of attention: heads of keys and values, a divisor of HEADS");
  command->add_option("--budget", o.budget, "Seconds that timing may take")->capture_default_str()->check(CLI::Range(0.0, 1e6));
  command->add_flag("--json", o.json, "Print one JSON object: target, ms, gflops, gb_s, roofline (fraction), opts, error and more");
  command->add_option("--roofline", o.roofline, "Draw the result below the machine's limits into this PNG");
  command->callback([] { bench(o); });
}

void add_devices(CLI::App& app) {
  static bool json = false;
  static std::string name;
  CLI::App* command = app.add_subcommand("devices", "List the backends, which of them work here, and what to install for the others");
  command->add_option("DEVICE", name, "Say what kernels may use on this one: NAME[:INDEX][:RENDERER[:ARCH]]");
  command->add_flag("--json", json, "Print one JSON object a line: device, works, default, reason");
  command->callback([] { name.empty() ? list_devices(json) : describe_device(name, json); });
}

void add_tune(CLI::App& app) {
  static TuneOptions o;
  CLI::App* command = app.add_subcommand("tune", "Measure this processor's cores, caches and memory, and choose kernels by that");
  command->footer(
      "Kernels are chosen by numbers of the processor's kind (`tg devices CPU` prints them). Where a machine differs, a virtual one with\n"
      "less memory bandwidth for instance, this measures its own, in a few seconds, and keeps them in the disk cache. Let nothing else\n"
      "run meanwhile.");
  command->add_flag("--forget", o.forget, "Go back to the numbers of the processor's kind");
  command->add_flag("--json", o.json, "Print one JSON object: microarchitecture, measured, and all numbers");
  command->callback([] { tune(o); });
}

constexpr std::string_view model_files_help =
    "Files that are read, whatever their names: safetensors and the index of several (model.safetensors.index.json), GGUF (of several\n"
    "files the first), ONNX, checkpoints and exported programs of PyTorch, .npy and .npz.";

void add_inspect(CLI::App& app) {
  static bool json = false;
  static std::string path;
  CLI::App* command =
      app.add_subcommand("inspect", "Print what is in a model file: tensors with shapes, types and bytes, metadata, operators");
  command->footer(std::string(model_files_help));
  command->add_option("FILE", path, "What to look into")->required();
  command->add_flag("--json", json,
                    "Print one JSON object: format, tensors, metadata; of a graph also inputs, outputs, operators, unsupported");
  command->callback([] { inspect(path, json); });
}

void add_convert(CLI::App& app) {
  static ConvertArgs o;
  CLI::App* command = app.add_subcommand("convert", "Write what is in a model file as safetensors, GGUF or .npz");
  command->footer(
      std::string(model_files_help) +
      "\nWhat is written has the format that its name ends in. Blocks of GGUF stay as they are in GGUF and become float32 elsewhere;\n"
      "dtypes that a format lacks become wider ones. .npz has no metadata.");
  command->add_option("FROM", o.from, "A model file of any format that is read")->required();
  command->add_option("TO", o.to, "NAME.safetensors, NAME.gguf or NAME.npz")->required()->check([](const std::string& path) {
    const bool is_known = path.ends_with(".safetensors") || path.ends_with(".gguf") || path.ends_with(".npz");
    return is_known ? std::string() : path + ": ends in none of .safetensors, .gguf, .npz; checkpoints of PyTorch are read, not written";
  });
  command->add_option("--quantize", o.quantize, "Of a GGUF file: make blocks of floats with two axes or more")
      ->check(CLI::IsMember(quantized_formats()));
  command->add_flag("--json", o.json, "Print one JSON object: from, to, tensors, quantized, bytes");
  command->callback([] { convert(o); });
}

std::string npz_alone(const std::string& path) { return path.ends_with(".npz") ? std::string() : path + ": expects NAME.npz"; }

void add_run(CLI::App& app) {
  static RunOptions o;
  CLI::App* command = app.add_subcommand("run", "Run a model file that holds a graph: ONNX, or a program of torch.export");
  command->footer(
      "A SOURCE is a picture (PNG, JPEG, WebP, BMP, PNM, TIFF, JPEG 2000), a sound (WAV, FLAC, OGG, MP3), ARRAY.npy, FILE.npz:NAME or\n"
      "any other model file with a tensor of that name, a number for all elements or several by commas, random, or random:2,3 for a "
      "shape.\n"
      "--input random alone fills all inputs that are not given; --input SOURCE without a name is for the only one that is left.\n"
      "Sizes that a model leaves open are those of the arrays and pictures that are given, else 1, or what --size says.");
  command->add_option("MODEL", o.model, "What to run")->required();
  command->add_option("--input", o.inputs.inputs, "An input and what it is made of; may be given several times")
      ->type_name("[NAME=]SOURCE")
      ->allow_extra_args(false);
  command->add_option("--size", o.inputs.sizes, "A size that the model leaves open, by its name")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  command->add_option("--seed", o.inputs.seed, "Seed of random inputs")->capture_default_str();
  command->add_option("--output", o.output, "Write the outputs under their names")->type_name("FILE.npz")->check(npz_alone);
  command->add_option("--save-inputs", o.save_inputs, "Write the inputs under their names")->type_name("FILE.npz")->check(npz_alone);
  command->add_option("--repeat", o.repeat, "Calls that are timed behind the first ones (default: up to 10 in 2 seconds)")
      ->check(CLI::Range(0, 1000000000));
  command->add_option("--labels", o.labels, "File with a line for each class")->type_name("FILE");
  command->add_option("--top", o.top, "How many classes are printed")->capture_default_str()->check(CLI::Range(0, 1000000));
  command->add_option("--fit", o.inputs.picture.fit, "Pictures of other proportions: their middle, or all of them")
      ->capture_default_str()
      ->check(CLI::IsMember({"crop", "stretch"}));
  command->add_option("--layout", o.inputs.picture.layout, "Axes of pictures; auto: told by the input's shape")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "nchw", "nhwc"}));
  command->add_flag("--bgr", o.inputs.picture.bgr, "Blue first");
  command->add_option("--scale", o.inputs.picture.scale, "What bytes of pictures are multiplied by (default: 1/255)");
  command->add_option("--mean", o.inputs.picture.mean, "What is then subtracted, for each channel")->delimiter(',')->type_name("R,G,B");
  command->add_option("--std", o.inputs.picture.std, "What is then divided by, for each channel")->delimiter(',')->type_name("R,G,B");
  command->add_option("--device", o.device, "Where to run, NAME[:INDEX][:RENDERER[:ARCH]] (default: that of DEV)");
  command->add_flag("--profile", o.profile, "Print on standard error what the timed calls spend their time on");
  command->add_flag(
      "--json", o.json,
      "Print one JSON object: inputs, outputs (name, shape, dtype), first_call_s, steady_ms, kernels, gflops, peak_mb and more");
  command->callback([] { run_model(o); });
}

int run(int argc, char** argv) {
  CLI::App app{"tg - train networks and look into the compiler of tinygrad.cpp", "tg"};
  app.set_version_flag("--version", "tg " TG_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this text and exit; `tg COMMAND --help` is about a command");
  app.require_subcommand(1);
  app.footer("Environment variables such as DEV (device), DEBUG (log) and NUM_CPU_THREADS: docs/environment.md");
  add_train(app);
  add_compile(app);
  add_simulate(app);
  add_bench(app);
  add_devices(app);
  add_tune(app);
  add_inspect(app);
  add_convert(app);
  add_run(app);
  ProfilingArgs profile;
  app.add_option("--profile", profile.path,
                 "Print what took longest, and write when it was, on the host and on devices, for Chrome's or Perfetto's viewer")
      ->type_name("FILE")
      ->check([](const std::string& path) {
        const std::filesystem::path folder = std::filesystem::path(path).parent_path();
        std::error_code ignored;
        return folder.empty() || std::filesystem::is_directory(folder, ignored) ? std::string()
                                                                                : folder.string() + ": there is no such folder";
      });
  std::optional<Profiling> profiling;
  app.parse_complete_callback([&] {
    if (!profile.path.empty()) profiling.emplace(profile);
  });
  try {
    app.parse(argc, argv);  // runs the command
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw std::runtime_error("cannot write to standard output");
  return 0;
}

}  // namespace

}  // namespace tinygrad::apps

namespace {

constexpr int kInterrupted = 130;  // 128 + SIGINT, as of shells
volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C ends the command in order, a second one at once.
void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  tinygrad::set_interrupt_check([] {
    if (interrupted) throw tinygrad::Cancelled("interrupted");
  });
}

}  // namespace

int main(int argc, char** argv) {
  // Mesa's Vulkan layer that chooses a device asks the desktop, and complains on standard error where there is none.
  if (!std::getenv("XDG_RUNTIME_DIR")) ::setenv("NODEVICE_SELECT", "1", 0);
  try {
    handle_interrupts();
    return tinygrad::apps::run(argc, argv);
  } catch (const tinygrad::Cancelled&) {
    std::fflush(stdout);
    std::fputs("tg: interrupted\n", stderr);
    return kInterrupted;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "tg: %s\n", e.what());
    return 1;
  }
}
