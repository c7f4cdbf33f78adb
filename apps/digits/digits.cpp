// Handwritten digits, from pixels to a picture of the network's mistakes: a first program to read.
#include <tinygrad/tinygrad.h>

#include "digits/data.h"
#include "train/train.h"

namespace tinygrad::apps {

namespace {

/// A network is a struct of layers and a function of its input. TG_FIELDS names the layers, which is how optimizers find the weights.
struct Net : nn::Module {
  nn::Conv2d conv1{1, 16, 3, {.padding = {1}, .bias = false}}, conv2{16, 32, 3, {.padding = {1}, .bias = false}};
  nn::BatchNorm norm1{16}, norm2{32};
  nn::Linear out{32 * 4 * 4, 10};

  /// Pixels (batch, 1, 8, 8) to a score for each digit (batch, 10).
  Tensor operator()(const Tensor& pixels) const {
    Tensor x = pixels.to_float() / 16;
    x = norm1(conv1(x)).relu();
    x = norm2(conv2(x)).relu().max_pool2d();
    return out(x.flatten(1).dropout(0.3));
  }
  TG_FIELDS(conv1, norm1, conv2, norm2, out)
};

/// Every fifth digit is for the test, always the same ones.
void split(const ImageSet& all, ImageSet& train, ImageSet& test) {
  train = test = {.height = all.height, .width = all.width, .brightest = all.brightest};
  for (int64_t i = 0; i < all.size(); ++i) (i % 5 == 0 ? test : train).append(all, i);
}

/// The pictures on the device, and batches of them moved by up to a pixel: what is cut out of a picture with a margin of one pixel.
struct Batches {
  Batches(const ImageSet& set, const std::vector<std::string>& devices)
      : pixels(Tensor(set.pixels, {set.size(), 8, 8}).pad({{0, 0}, {1, 1}, {1, 1}}).flatten().shard(devices).contiguous().realize()),
        labels(Tensor(set.labels).shard(devices).realize()) {}

  /// Where in `pixels` the chosen digits begin when each is moved at random.
  static Tensor corners(const std::vector<int32_t>& digits, std::mt19937_64& random) {
    std::vector<int32_t> all;
    for (const int32_t i : digits) {
      const auto move = static_cast<int32_t>(random() % 9);
      all.push_back(i * 100 + move / 3 * 10 + move % 3);
    }
    return Tensor(all, {int64_t(all.size()), 1, 1, 1});
  }
  Tensor cut_out(const Tensor& corners) const {
    const Tensor window = Tensor::arange(8).reshape({8, 1}) * 10 + Tensor::arange(8);
    return pixels[corners + window];
  }

  Tensor pixels, labels;
};

}  // namespace

void train_digits(const TrainOptions& options) {
  Tensor::manual_seed(options.seed);
  std::mt19937_64 random(options.seed);
  ImageSet train, test;
  split(load_digits(options.data), train, test);
  // Each device has the pictures and the weights, and computes with its part of each batch.
  const std::vector<std::string> devices = devices_of_shards(options);
  const Batches data(train, devices);

  // Epochs, sizes and learning rate were chosen by the accuracy on the digits with index % 5 == 1, trained on the three other fifths.
  const Net net;
  for (auto [name, weight] : nn::state::get_state_dict(net)) weight.shard_(devices);
  nn::optim::Adam optimizer(nn::state::get_parameters(net));
  constexpr double learning_rate = 4e-3;
  constexpr int64_t batch = 64;
  const int64_t batches = train.size() / batch, steps = options.epochs * batches;

  // The second call is captured; from then on only its kernels run, on each call's arguments and on the weights as they are.
  const auto train_step = jit([&](const Tensor& corners, const Tensor& chosen, const Tensor& rate) {
    const Context training{{.training = true}};  // batch normalization and dropout behave as in training
    optimizer.lr.assign(rate);
    optimizer.zero_grad();
    const Tensor scores = net(data.cut_out(corners)), answers = data.labels[chosen];
    const Tensor loss = scores.sparse_categorical_crossentropy(answers), right = count_right(scores, answers);
    loss.backward();   // the gradient of the loss by every weight
    optimizer.step();  // here everything above is computed: until now it was a graph
    return std::pair(loss, right);
  });

  Checkpoints checkpoints(options, "digits", net, optimizer, random);
  int64_t step = checkpoints.resume() * batches;
  ProgressBar bar({.description = "digits", .total = steps, .disable = rank() != 0});
  bar.update(step);
  while (step < steps) {
    const std::vector<int32_t> order = shuffled(train.size(), random);
    EpochMeter meter(bar);
    for (int64_t b = 0; b < batches; ++b, ++step) {
      const std::vector<int32_t> chosen(order.begin() + b * batch, order.begin() + (b + 1) * batch);
      const Tensor rate({learning_rate * double(steps - step) / double(steps)});  // falls to zero along a line
      const auto [loss, right] = train_step(Batches::corners(chosen, random).shard(devices, 0), Tensor(chosen).shard(devices, 0), rate);
      meter.add(loss, right, batch);
    }
    meter.report(options, static_cast<int>(step / batches));
    checkpoints.save(static_cast<int>(step / batches));
  }
  bar.close();

  const Tensor scores = net(Tensor(test.pixels, {test.size(), 1, 8, 8}));
  report_result(options, test, scores.argmax(1).tolist<int32_t>());
}

}  // namespace tinygrad::apps
