#pragma once

#include "check/spec.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace idem::check {

/// What no report, message or dry run may show: values of the environment; of header fields and
/// query parameters that have a secret by their name, those of the file and those of answers.
class Secrets {
 public:
  explicit Secrets(const Spec& spec);

  std::string masked(std::string text) const;
  /// Of the bytes of an answer: also its secret-named fields, such as the cookies that it sets.
  std::string masked_answer(std::string bytes) const;
  /// A text of elsewhere in a sentence: masked, without the user of a URL, printable, and short.
  std::string in_sentence(const std::string& text) const;

 private:
  void add(std::string_view value);
  void add_field(std::string_view name, std::string_view value);
  void add_query(std::string_view target);

  std::string key_header_;
  std::vector<std::string> values_;  ///< The longest first: one may be a part of another.
};

/// "http://user:password@host" without the user.
std::string without_user(std::string text);
/// Without its query.
std::string_view path_of(std::string_view target);

}  // namespace idem::check
