// MNIST and Fashion-MNIST (tg train mnist).

#include <tinygrad/tinygrad.h>

#include "common/sheet.h"
#include "models/mnist_net.h"
#include "train/train.h"

namespace tinygrad::apps {

namespace {

ImageSet image_set(const Tensor& x, const Tensor& y) {
  return {.height = x.size(2), .width = x.size(3), .pixels = x.tolist<uint8_t>(), .labels = y.tolist<uint8_t>()};
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
  const nn::datasets::LabelledImages data = nn::datasets::mnist({.fashion = options.fashion, .folder = options.data});
  const ImageSet train = image_set(data.x_train, data.y_train), test = image_set(data.x_test, data.y_test);
  Tensor::manual_seed(options.seed);
  std::mt19937_64 random(options.seed);
  const std::vector<std::string> devices = devices_of_shards(options);
  const Tensor images = data.x_train.shard(devices).realize(), labels = data.y_train.shard(devices).realize();
  const MnistNet net;
  for (auto [name, weight] : nn::state::get_state_dict(net)) weight.shard_(devices);
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
  Checkpoints checkpoints(options, options.fashion ? "fashion-mnist" : "mnist", net, optimizer, random);
  const int done = checkpoints.resume();
  ProgressBar bar({.description = options.fashion ? "fashion-mnist" : "mnist", .total = options.epochs * batches, .disable = rank() != 0});
  bar.update(done * batches);
  for (int epoch = done; epoch < options.epochs; ++epoch) {
    const std::vector<int32_t> order = shuffled(train.size(), random);
    EpochMeter meter(bar);
    for (int64_t b = 0; b < batches; ++b) {
      const std::vector<int32_t> chosen(order.begin() + b * batch, order.begin() + (b + 1) * batch);
      const auto [loss, right] = train_step(Tensor(chosen).shard(devices, 0));
      meter.add(loss, right, batch);
    }
    meter.report(options, epoch + 1);
    checkpoints.save(epoch + 1);
  }
  bar.close();
  const std::vector<int32_t> predicted = predict(net, test);
  report_result(options, test, predicted);
}

}  // namespace tinygrad::apps
