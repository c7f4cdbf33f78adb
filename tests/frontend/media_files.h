#pragma once
/// Files of pictures and sounds, made byte by byte.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/tensor.h>

namespace tinygrad::test {

inline Tensor file_of(std::string_view bytes) { return Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end())); }

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i));
  return out;
}

/// An uncompressed TIFF of RGB, or of RGBA whose colours are not multiplied by alpha.
inline std::string tiff_of(uint32_t width, uint32_t height, int channels, std::string_view pixels) {
  struct Entry {
    uint16_t tag, type;
    uint32_t count, value;
  };
  constexpr uint16_t two_bytes = 3, four_bytes = 4;
  const uint32_t entries = channels == 4 ? 10 : 9, bits_at = 8 + 2 + 12 * entries + 4, pixels_at = bits_at + 8;
  std::vector<Entry> all{{256, four_bytes, 1, width},
                         {257, four_bytes, 1, height},
                         {258, two_bytes, uint32_t(channels), bits_at},
                         {259, two_bytes, 1, 1},
                         {262, two_bytes, 1, 2},
                         {273, four_bytes, 1, pixels_at},
                         {277, two_bytes, 1, uint32_t(channels)},
                         {278, four_bytes, 1, height},
                         {279, four_bytes, 1, uint32_t(pixels.size())}};
  if (channels == 4) all.push_back({338, two_bytes, 1, 2});
  std::string out("II*\0\x08\0\0\0", 8);
  out += little_endian(entries, 2);
  for (const Entry& e : all)
    out += little_endian(e.tag, 2) + little_endian(e.type, 2) + little_endian(e.count, 4) + little_endian(e.value, 4);
  out += little_endian(0, 4);
  for (int i = 0; i < 4; ++i) out += little_endian(8, 2);
  return out.append(pixels);
}

/// A palette of four colours, 2 x 2 pixels of 4 bits, rows from the bottom.
inline std::string bmp_with_palette() {
  std::string out = "BM" + little_endian(0, 8) + little_endian(54 + 16, 4);
  out += little_endian(40, 4) + little_endian(2, 4) + little_endian(2, 4) + little_endian(1, 2) + little_endian(4, 2);
  out += little_endian(0, 4) + little_endian(8, 4) + little_endian(0, 8) + little_endian(4, 4) + little_endian(0, 4);
  out += std::string("\1\2\3\0\4\5\6\0\7\10\11\0\12\13\14\0", 16);  // blue, green, red, nothing
  return out + std::string("\x23\0\0\0\x01\0\0\0", 8);
}

/// 2 x 2 pixels without loss: (200, 100, 50), (0, 255, 0) and (10, 20, 30), (255, 255, 255).
inline std::string jpeg2000_codestream() {
  constexpr std::string_view hex =
      "ff4fff51002f000000000002000000020000000000000000000000020000000200000000000000000003070101070101070101ff52000c00000001000004040001ff"
      "5c"
      "00044040ff640025000143726561746564206279204f70656e4a5045472076657273696f6e20322e352e34ff90000a0000000000280001ff93df80300e1178031997"
      "cf"
      "b4140b9a8aa3afdf80300e29a86f6917ffd9";
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) out += char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

/// Samples of 16 bits, frame by frame.
inline std::string wav_of(int channels, int rate, const std::vector<int16_t>& samples) {
  std::string data;
  for (const int16_t s : samples) data += little_endian(uint16_t(s), 2);
  const std::string format = little_endian(1, 2) + little_endian(uint64_t(channels), 2) + little_endian(uint64_t(rate), 4) +
                             little_endian(uint64_t(rate) * uint64_t(channels) * 2, 4) + little_endian(uint64_t(channels) * 2, 2) +
                             little_endian(16, 2);
  return "RIFF" + little_endian(36 + data.size(), 4) + "WAVEfmt " + little_endian(16, 4) + format + "data" + little_endian(data.size(), 4) +
         data;
}

}  // namespace tinygrad::test
