#include "store/redis/resp.hpp"

#include <idem/limits.hpp>

#include <charconv>

namespace idem::redis {
namespace {

constexpr std::string_view line_end = "\r\n";

enum class Got : std::uint8_t { whole, part, nonsense };

/// Reads one reply; why() describes nonsense.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  Got reply(Reply& into, std::size_t depth) {
    if (depth > limits::redis_reply_depth_max) return nonsense("a reply is nested too deeply");
    std::string_view line;
    if (const Got got = take_line(line); got != Got::whole) return got;
    const char kind = line.empty() ? '\0' : line.front();
    if (!line.empty()) line.remove_prefix(1);
    switch (kind) {
      case '+':
      case '-':
        into.kind = kind == '+' ? Reply::Kind::text : Reply::Kind::error;
        into.text = line;
        return Got::whole;
      case ':':
        into.kind = Reply::Kind::number;
        return to_number(line, into.number) ? Got::whole
                                            : nonsense("a number has other characters");
      case '$':
        return text(into, line);
      case '*':
        return list(into, line, depth);
      default:
        return nonsense("a reply is of a kind that does not exist");
    }
  }

  std::string_view rest() const noexcept { return rest_; }
  std::string_view why() const noexcept { return why_; }

 private:
  Got nonsense(std::string_view why) {
    why_ = why;
    return Got::nonsense;
  }

  Got take_line(std::string_view& line) {
    const auto end = rest_.find(line_end);
    if (end == rest_.npos) {
      return rest_.size() > limits::redis_line_max ? nonsense("a line is too long") : Got::part;
    }
    if (end > limits::redis_line_max) return nonsense("a line is too long");
    line = rest_.substr(0, end);
    rest_.remove_prefix(end + line_end.size());
    return Got::whole;
  }

  static bool to_number(std::string_view digits, std::int64_t& into) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
    return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  }

  Got text(Reply& into, std::string_view digits) {
    std::int64_t size = 0;
    if (!to_number(digits, size)) return nonsense("the size of a text is no number");
    if (size == -1) return into.kind = Reply::Kind::nil, Got::whole;
    if (size < 0 || size > static_cast<std::int64_t>(limits::redis_reply_bytes_max)) {
      return nonsense("a text is too long");
    }
    const auto bytes = static_cast<std::size_t>(size);
    if (rest_.size() < bytes + line_end.size()) return Got::part;
    if (rest_.substr(bytes, line_end.size()) != line_end) return nonsense("a text has no end");
    into.kind = Reply::Kind::text;
    into.text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes + line_end.size());
    return Got::whole;
  }

  Got list(Reply& into, std::string_view digits, std::size_t depth) {
    std::int64_t size = 0;
    if (!to_number(digits, size)) return nonsense("the size of a list is no number");
    if (size == -1) return into.kind = Reply::Kind::nil, Got::whole;
    if (size < 0 || size > static_cast<std::int64_t>(limits::redis_reply_items_max)) {
      return nonsense("a list is too long");
    }
    into.kind = Reply::Kind::list;
    // The announced size is not trusted: the shortest reply has three bytes.
    if (rest_.size() < static_cast<std::size_t>(size) * 3) return Got::part;
    into.items.resize(static_cast<std::size_t>(size));
    for (Reply& item : into.items) {
      if (const Got got = reply(item, depth + 1); got != Got::whole) return got;
    }
    return Got::whole;
  }

  std::string_view rest_;
  std::string_view why_;
};

void append_head(std::string& out, char kind, std::size_t size) {
  char text[24];
  text[0] = kind;
  char* const end = std::to_chars(text + 1, text + sizeof text, size).ptr;
  out.append(text, end);
  out.append(line_end);
}

}  // namespace

std::string error_text(const Reply& error) {
  struct Advice {
    std::string_view code;
    std::string_view todo;
  };
  constexpr Advice all[] = {
      {"NOPERM",
       "this user of Redis lacks the right: ACL SETUSER gives it the command and the keys"},
      {"NOAUTH", "write the user into the URL, and password_file"},
      {"WRONGPASS", "the user of the URL, or what is in password_file, is not what the server has"},
      {"LOADING", "it reads its data after a start, and serves once it has"},
      {"MISCONF", "it cannot write to its disk: make room there, or look at its log"},
      {"OOM", "it has reached maxmemory: raise it"},
      {"NOREPLICAS", "too few replicas are connected to it (min-replicas-to-write)"},
      {"BUSY", "a script runs on it: SCRIPT KILL or FUNCTION KILL ends it"},
      {"CLUSTERDOWN", "nodes of the cluster are missing: CLUSTER INFO and CLUSTER NODES name them"},
  };
  std::string text = error.text;
  for (const Advice& one : all) {
    if (error.is_error(one.code)) text.append("; ").append(one.todo);
  }
  return text;
}

bool Reply::is_error(std::string_view code) const noexcept {
  return kind == Kind::error && text.starts_with(code) &&
         (text.size() == code.size() || text[code.size()] == ' ');
}

const Reply& Reply::at(std::size_t index) const noexcept {
  static const Reply nil;
  return index < items.size() ? items[index] : nil;
}

std::expected<std::optional<Reply>, std::string_view> take_reply(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  Reader reader(bytes);
  Reply reply;
  switch (reader.reply(reply, 0)) {
    case Got::whole:
      bytes = reader.rest();
      return reply;
    case Got::part:
      if (bytes.size() > limits::redis_reply_bytes_max) {
        return std::unexpected("a reply is too long");
      }
      return std::nullopt;
    case Got::nonsense:
      break;
  }
  return std::unexpected(reader.why());
}

CommandWriter::CommandWriter(std::string& out, std::size_t arguments) : out_(out) {
  append_head(out_, '*', arguments);
}

CommandWriter& CommandWriter::add(std::string_view argument) {
  append_head(out_, '$', argument.size());
  out_.append(argument);
  out_.append(line_end);
  return *this;
}

CommandWriter& CommandWriter::add(std::int64_t number) {
  char text[24];
  char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  return add(std::string_view(text, static_cast<std::size_t>(end - text)));
}

std::string command(std::span<const std::string_view> arguments) {
  std::string out;
  CommandWriter writer(out, arguments.size());
  for (const auto argument : arguments) writer.add(argument);
  return out;
}

}  // namespace idem::redis
