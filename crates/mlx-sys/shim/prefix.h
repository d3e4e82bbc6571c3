// Force-included into every mlx-c source on Linux. libstdc++ before 13 has no std::format, which mlx-c uses in the
// text of errors only: this stand-in puts the arguments in for "{}" one after the other, which is all mlx-c asks for.
#pragma once
#ifdef __cplusplus
#include <version>
#if !defined(__cpp_lib_format)
#include <sstream>
#include <string>
#include <string_view>
namespace std {
inline string format(string_view text) { return string(text); }
template <class First, class... Rest>
string format(string_view text, const First& first, const Rest&... rest) {
  auto hole = text.find('{');
  if (hole == string_view::npos) return string(text);
  auto end = text.find('}', hole);
  ostringstream out;
  out << text.substr(0, hole) << first;
  return out.str() + format(end == string_view::npos ? string_view() : text.substr(end + 1), rest...);
}
} // namespace std
#endif
#endif
