#include "config/yaml.hpp"

#include "config/words.hpp"
#include "core/bytes/utf8.hpp"

#include <idem/limits.hpp>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>

namespace idem::config {
namespace {

/// The lines of a text, to count columns in characters where the library counts bytes.
class Lines {
 public:
  Lines(std::string_view text, const std::string& source) : text_(text), source_(source) {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }

  Place at(std::size_t offset) const {
    const auto line = std::ranges::upper_bound(starts_, offset) - starts_.begin();
    const auto start = starts_[static_cast<std::size_t>(line - 1)];
    return place(line, text_.substr(start, offset - start));
  }

  Place at(const YAML::Mark& mark) const {
    if (mark.line < 0 || static_cast<std::size_t>(mark.line) >= starts_.size()) {
      return {source_, 1, 1};
    }
    const auto start = starts_[static_cast<std::size_t>(mark.line)];
    return place(mark.line + 1, text_.substr(start, static_cast<std::size_t>(mark.column)));
  }

 private:
  Place place(std::ptrdiff_t line, std::string_view before) const {
    const auto characters = std::ranges::count_if(
        before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return {source_, static_cast<int>(line), static_cast<int>(characters) + 1};
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<std::size_t> starts_;
};

/// The library ends a file at a byte 04 and guesses encodings, so the bytes are checked first.
bool are_clean(std::string_view text, const Lines& lines, Complaints& complaints) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    complaints.add(lines.at(0), "a byte order mark; save the file as UTF-8 without one");
    return false;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto bytes = utf8_sequence(text, at);
    const char c = text[at];
    std::string_view wrong;
    if (bytes == 0) wrong = "this byte is no UTF-8; save the file as UTF-8";
    if (c == '\t') wrong = "a tab; write spaces";
    const bool line_end = c == '\n' || (c == '\r' && text.substr(at, 2) == "\r\n");
    const bool control = (c >= 0 && c < ' ') || c == '\x7F';
    if (control && c != '\t' && !line_end) wrong = "a control character; leave it out";
    if (!wrong.empty()) {
      complaints.add(lines.at(at), std::string(wrong));
      return false;
    }
    at += bytes;
  }
  return true;
}

class Builder final : public YAML::EventHandler {
 public:
  Builder(const Lines& lines, Complaints& complaints, std::size_t depth_max)
      : lines_(lines), complaints_(complaints), depth_max_(depth_max) {}

  Node take() { return std::move(root_); }
  bool refused() const noexcept { return refused_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!fine(mark, anchor, "?")) return;
    add({.type = Node::Type::null, .place = lines_.at(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(lines_.at(mark), "an alias; write the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!fine(mark, anchor, tag)) return;
    const auto type = tag == quoted ? Node::Type::text : plain_type(value);
    add({.type = type, .text = value, .place = lines_.at(mark)});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (fine(mark, anchor, tag)) open({.kind = Node::Kind::list, .place = lines_.at(mark)});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (fine(mark, anchor, tag)) open({.kind = Node::Kind::map, .place = lines_.at(mark)});
  }
  void OnMapEnd() override { close(); }

 private:
  /// The library's tag of a scalar that is not plain.
  static constexpr std::string_view quoted = "!";

  bool fine(const YAML::Mark& mark, YAML::anchor_t anchor, std::string_view tag) {
    if (anchor != 0) refuse(lines_.at(mark), "an anchor; repeat the value instead");
    const bool own = tag.empty() || tag == "?" || tag == quoted;
    if (!own) refuse(lines_.at(mark), "a tag; leave it out");
    return !refused_;
  }

  // Only an exception could stop the library here, so the rest is ignored.
  void refuse(const Place& place, std::string sentence) {
    if (!refused_) complaints_.add(place, std::move(sentence));
    refused_ = true;
  }

  void open(Node node) {
    if (open_.size() >= depth_max_) {
      return refuse(node.place, "this is nested deeper than any setting is");
    }
    open_.push_back(std::move(node));
  }

  void close() {
    if (refused_) return;
    Node whole = std::move(open_.back());
    open_.pop_back();
    add(std::move(whole));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    auto& parent = open_.back();
    const bool map = parent.kind == Node::Kind::map;
    if (parent.items.size() >= (map ? limits::config_entries_max : limits::routes_max)) {
      return refuse(node.place, "more entries than any setting has");
    }
    const bool is_key = map && parent.keys.size() == parent.items.size();
    if (!is_key) {
      // The library gives a missing value the place of the next token.
      const bool nothing = map && node.type == Node::Type::null;
      if (nothing && node.place.line != parent.keys.back().place.line) {
        node.place = parent.keys.back().place;
      }
      parent.items.push_back(std::move(node));
      return;
    }
    if (node.kind != Node::Kind::scalar) {
      return refuse(node.place, "a map or list as a key; write a name");
    }
    for (const auto& key : parent.keys) {
      if (key.text != node.text) continue;
      return refuse(node.place, shown(node.text) + " appears twice, first in line " +
                                    std::to_string(key.place.line) + "; keep one of them");
    }
    parent.keys.push_back(std::move(node));
  }

  const Lines& lines_;
  Complaints& complaints_;
  const std::size_t depth_max_;
  std::vector<Node> open_;
  Node root_;
  bool refused_ = false;
};

/// Finds where a second document begins.
class SecondDocument final : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> begin;

  void OnDocumentStart(const YAML::Mark& mark) override { begin = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// A stream over bytes without a copy.
class Bytes final : public std::streambuf {
 public:
  explicit Bytes(std::string_view text) {
    char* const begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

std::optional<Node> parse(std::string_view text, const std::string& source, const Lines& lines,
                          Complaints& complaints, std::size_t depth_max) {
  Bytes bytes(text);
  std::istream stream(&bytes);
  YAML::Parser parser(stream);
  Builder builder(lines, complaints, depth_max);
  if (!parser.HandleNextDocument(builder)) {
    return Node{.kind = Node::Kind::map, .place = {source, 1, 1}};
  }
  if (builder.refused()) return std::nullopt;
  SecondDocument second;
  if (parser.HandleNextDocument(second) && second.begin) {
    complaints.add(lines.at(*second.begin), "a second document begins here; keep one");
    return std::nullopt;
  }
  Node root = builder.take();
  if (root.kind == Node::Kind::scalar && root.type == Node::Type::null) {
    root.kind = Node::Kind::map;
  }
  return root;
}

}  // namespace

std::optional<Node> read_yaml(std::string_view text, const std::string& source,
                              Complaints& complaints, YamlLimits most) {
  if (text.size() > most.bytes) {
    complaints.add({source, 1, 1}, "the file has more than " + std::to_string(most.bytes >> 20) +
                                       "MiB; no such file is so large");
    return std::nullopt;
  }
  const Lines lines(text, source);
  if (!are_clean(text, lines, complaints)) return std::nullopt;
  try {
    return parse(text, source, lines, complaints, most.depth);
  } catch (const YAML::Exception& error) {
    complaints.add(lines.at(error.mark), "this is no YAML (" + error.msg +
                                             "); look at indentation, colons, quotes and brackets");
    return std::nullopt;
  }
}

}  // namespace idem::config
