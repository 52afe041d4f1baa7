#include "cli/reconcile/reconcile_export.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/reconcile/reconcile_list.hpp"
#include "compare/amount.hpp"
#include "core/bytes/rfc3339.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>

namespace idem::cli {
namespace {

using compare::BadLine;
using compare::ExportLine;

compare::ReadBytes bytes_of(std::shared_ptr<std::istream> from,
                            std::shared_ptr<FramedDigest> digest) {
  return [from = std::move(from), digest = std::move(digest)](
             std::span<char> into) -> std::expected<std::size_t, std::string> {
    from->read(into.data(), static_cast<std::streamsize>(into.size()));
    if (from->bad()) return std::unexpected(std::string("reading failed before the end"));
    const auto count = static_cast<std::size_t>(from->gcount());
    digest->add_bytes({into.data(), count});
    return count;
  };
}

// RFC 3339, or seconds since 1970.
std::optional<StoreTime> moment_of(const std::string& text) {
  if (const auto moment = parse_rfc3339(text)) return moment;
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  constexpr std::int64_t year_10000 = 253'402'300'800;
  if (error != std::errc{} || stop != end || seconds < 0 || seconds >= year_10000) return {};
  return StoreTime{std::chrono::seconds(seconds)};
}

}  // namespace

std::string OpenExport::sentence_of(const BadLine& bad) const {
  std::string place = name;
  if (bad.line > 0) place += ":" + std::to_string(bad.line);
  if (bad.column > 0) place += ":" + std::to_string(bad.column);
  return printable(place + ": " + bad.what);
}

std::optional<std::string> plain_currency(std::string_view text) {
  constexpr std::size_t bytes_max =
      15;  // ISO 4217 has three letters; longer names are for other units.
  if (text.size() > bytes_max) return std::nullopt;
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

ExportFields::ExportFields(const ReconcileOptions& options) : options_(options) {
  const auto place_of = [&](const std::string& name) -> Place {
    if (name.empty()) return std::nullopt;
    names_.push_back(name);
    return names_.size() - 1;
  };
  match_ = place_of(options.match);
  scope_ = place_of(options.scope_at);
  amount_ = place_of(options.amount);
  currency_ = place_of(options.currency);
  status_ = place_of(options.status);
  id_ = place_of(options.id);
  time_ = place_of(options.time);
}

const std::optional<std::string>& ExportFields::value(const ExportLine& line,
                                                      const Place& at) const {
  static const std::optional<std::string> none;
  return at ? line.values.at(*at) : none;
}

std::expected<compare::Money, std::string> ExportFields::money_of(const ExportLine& line) const {
  compare::Money money;
  if (amount_) {
    const auto& text = value(line, amount_);
    if (!text) return std::unexpected(options_.amount + " is missing");
    auto amount = compare::exact_amount(*text, options_.scale);
    if (!amount) return std::unexpected(options_.amount + " " + amount.error());
    money.amount = std::move(*amount);
  }
  if (currency_) {
    const auto& text = value(line, currency_);
    auto currency = text ? plain_currency(*text) : std::nullopt;
    if (!currency) return std::unexpected(options_.currency + " is missing or is no currency");
    money.currency = std::move(*currency);
  }
  return money;
}

std::expected<ReadLine, BadLine> ExportFields::read(const ExportLine& line) const {
  ReadLine read;
  const auto bad = [&](std::string what) {
    return std::unexpected(BadLine{line.line, 0, std::move(what)});
  };
  read.theirs.line = line.line;
  read.theirs.id = value(line, id_).value_or("");
  read.match = value(line, match_).value_or("");
  read.scope = scope_ ? value(line, scope_).value_or("") : options_.scope;
  if (status_) {
    const auto& status = value(line, status_);
    if (!status) return bad(options_.status + " is missing");
    const auto is_in = [&](const std::vector<std::string>& named) {
      return std::ranges::find(named, *status) != named.end();
    };
    read.theirs.happened = is_in(options_.happened);
    if (!read.theirs.happened && !is_in(options_.refused)) read.theirs.unclear = *status;
  }
  if (time_) {
    const auto& text = value(line, time_);
    read.theirs.at = text ? moment_of(*text) : std::nullopt;
    if (!read.theirs.at)
      return bad(options_.time + " is neither an RFC 3339 time nor Unix seconds");
  }
  auto money = money_of(line);
  // A refused line moved no money, so its amount is not needed.
  if (!money && read.theirs.happened) return bad(std::move(money.error()));
  if (money) read.theirs.money = std::move(*money);
  return read;
}

std::expected<OpenExport, std::string> open_export(const ReconcileOptions& options,
                                                   const ExportFields& fields) {
  OpenExport opened;
  std::expected<std::unique_ptr<compare::ExportReader>, BadLine> reader;
  if (!options.list.url.empty()) {
    // The query may contain a secret.
    opened.name = options.list.url.substr(0, options.list.url.find('?'));
    opened.list->states_its_end = false;
    auto pages = list_pages(options, opened.digest, opened.list);
    if (!pages) return std::unexpected(std::move(pages.error()));
    reader = compare::read_list(std::move(*pages), fields.names());
  } else {
    const bool is_input = options.file == "-";
    opened.name = is_input ? "standard input" : options.file;
    const auto leave = [](std::istream*) {};
    std::shared_ptr<std::istream> from(&std::cin, leave);
    if (!is_input) from = std::make_shared<std::ifstream>(options.file, std::ios::binary);
    if (!*from) return std::unexpected(options.file + ": " + std::strerror(errno));
    auto bytes = bytes_of(std::move(from), opened.digest);
    reader = options.format == "csv" ? compare::read_csv(std::move(bytes), fields.names())
                                     : compare::read_json_lines(std::move(bytes), fields.names());
  }
  if (!reader) return std::unexpected(opened.sentence_of(reader.error()));
  opened.reader = std::move(*reader);
  return opened;
}

}  // namespace idem::cli
