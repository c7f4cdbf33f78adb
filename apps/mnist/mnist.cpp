// MNIST and Fashion-MNIST (tg train mnist): where their files are found, and the training.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include <tinygrad/tinygrad.h>

#include "common/gzip.h"
#include "common/sheet.h"
#include "mnist/download.h"
#include "mnist/idx.h"
#include "models/mnist_net.h"
#include "train/train.h"

namespace tinygrad::apps {

namespace {

struct Source {
  std::string name, url;
  struct File {
    std::string name, md5;  ///< of the gzip file
  };
  std::array<File, 4> files;  ///< images and labels for training, then for the test
};

const Source& source(bool fashion) {
  static const Source digits{"mnist",
                             "https://storage.googleapis.com/cvdf-datasets/mnist/",
                             {{{"train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
                               {"train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"},
                               {"t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"},
                               {"t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"}}}};
  static const Source clothes{"fashion-mnist",
                              "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                              {{{"train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                                {"train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"},
                                {"t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"},
                                {"t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"}}}};
  return fashion ? clothes : digits;
}

/// $XDG_CACHE_HOME/tinygrad_cpp/NAME, or below ~/.cache.
std::filesystem::path cache_folder(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::filesystem::path(cache) / "tinygrad_cpp" / name;
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache" / "tinygrad_cpp" / name;
  throw IoError(fmt::format("{}: neither XDG_CACHE_HOME nor HOME says where to keep the files; name a folder with --data", name));
}

/// The path of a file or of its gzip form; empty if there is neither.
std::string find_file(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& path : {folder / name, folder / (name + ".gz")})
    if (std::error_code error; std::filesystem::is_regular_file(path, error)) return path.string();
  return {};
}

[[noreturn]] void throw_missing(const Source& s, const std::string& why, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const Source::File& f : s.files) names.push_back(f.name);
  throw IoError(fmt::format("{}: {}; put the files {} (plain or .gz) into {}", s.name, why, fmt::join(names, ", "), folder.string()));
}

void download_missing(const Source& s, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(fmt::format("{}: cannot make the folder {}: {}", s.name, folder.string(), error.message()));
  for (const Source::File& f : s.files) {
    if (!find_file(folder, f.name).empty()) continue;
    fmt::print(stderr, "downloading {}{}.gz\n", s.url, f.name);
    try {
      download(s.url + f.name + ".gz", f.md5, (folder / (f.name + ".gz")).string());
    } catch (const Error& e) {
      throw_missing(s, e.what(), folder);
    }
  }
}

/// The training set and the test set.
std::pair<ImageSet, ImageSet> load(const TrainOptions& options) {
  const Source& s = source(options.fashion);
  const std::filesystem::path folder = options.data.empty() ? cache_folder(s.name) : std::filesystem::path(options.data);
  if (options.data.empty()) download_missing(s, folder);
  std::array<std::string, 4> paths, bytes;
  for (size_t i = 0; i < 4; ++i) {
    paths[i] = find_file(folder, s.files[i].name);
    if (paths[i].empty()) throw_missing(s, fmt::format("no {}", s.files[i].name), folder);
    bytes[i] = read_gzip(paths[i], size_t{256} << 20);
  }
  std::pair sets{parse_images(bytes[0], paths[0], bytes[1], paths[1]), parse_images(bytes[2], paths[2], bytes[3], paths[3])};
  for (const auto& [set, path] : {std::pair(&sets.first, paths[0]), std::pair(&sets.second, paths[2])})
    if (set->height != 28 || set->width != 28)
      throw FormatError(fmt::format("{}: pictures of {}x{}, expected 28x28", path, set->height, set->width));
  return sets;
}

std::vector<int32_t> predict(const MnistNet& net, const ImageSet& set) {
  constexpr int64_t batch = 500;
  std::vector<int32_t> all;
  for (int64_t begin = 0; begin < set.size(); begin += batch) {
    const int64_t count = std::min(batch, set.size() - begin);
    const Tensor pixels(std::span(set.image(begin), static_cast<size_t>(count * 28 * 28)), {count, 1, 28, 28});
    const std::vector<int32_t> classes = net(pixels).argmax(1).tolist<int32_t>();
    all.insert(all.end(), classes.begin(), classes.end());
  }
  return all;
}

}  // namespace

void train_mnist(const TrainOptions& options) {
  const auto [train, test] = load(options);
  Tensor::manual_seed(options.seed);
  std::mt19937_64 random(options.seed);
  const Tensor images(train.pixels, {train.size(), 1, 28, 28}), labels(train.labels);
  const MnistNet net;
  nn::optim::Adam optimizer(nn::state::get_parameters(net));
  const int64_t batch = std::min<int64_t>(128, train.size()), batches = train.size() / batch;
  const auto train_step = jit([&](const Tensor& chosen) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor scores = net(images[chosen]), answers = labels[chosen];
    const Tensor loss = scores.sparse_categorical_crossentropy(answers), right = count_right(scores, answers);
    loss.backward();
    optimizer.step();
    return std::pair(loss, right);
  });
  ProgressBar bar({.description = source(options.fashion).name, .total = options.epochs * batches});
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const std::vector<int32_t> order = shuffled(train.size(), random);
    EpochMeter meter(bar);
    for (int64_t b = 0; b < batches; ++b) {
      const auto [loss, right] = train_step(Tensor(std::vector<int32_t>(order.begin() + b * batch, order.begin() + (b + 1) * batch)));
      meter.add(loss, right, batch);
    }
    meter.report(options, epoch + 1);
  }
  bar.close();
  const std::vector<int32_t> predicted = predict(net, test);
  report_result(options, test, predicted);
}

}  // namespace tinygrad::apps
