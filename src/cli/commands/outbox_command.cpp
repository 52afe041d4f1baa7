#include "cli/commands/outbox_command.hpp"

#include "cli/commands/admin_values.hpp"
#include "cli/commands/outbox_print.hpp"
#include "cli/exit_code.hpp"
#include "core/bytes/percent.hpp"
#include "json/writer.hpp"

#include <utility>

namespace idem::cli {
namespace {

// The API refuses an explicit 0 and says what to write instead.
std::string number_or_nothing(const std::optional<std::size_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

OutboxCommand::OutboxCommand(const Command& program)
    : OperatorCommand(program, "outbox", "See the messages of a running gateway or worker"),
      list_(declare("list", "List a page of messages, oldest first")),
      show_(declare("show", "Show one message with its history")),
      retry_(declare("retry", "Send a waiting message now")) {
  list_
      .add_option("--state", state_, "only messages that are waiting, delivered, dead or discarded")
      .one_of({"waiting", "delivered", "dead", "discarded"});
  list_.add_option("--destination", destination_, "only to this destination");
  list_.add_option("--operation-ref", operation_ref_, "only those that were sent with this record");
  list_.add_option("--limit", limit_, "messages in a page").between(1, 1'000);
  list_.add_option("--cursor", cursor_, "continue after an earlier page");
  for (const auto& one : {show_, retry_}) {
    one.add_option("id", id_, "the message's id: 32 hexadecimal digits")
        .required()
        .valid(why_no_id);
  }
}

int OutboxCommand::run() {
  if (show_.parsed()) {
    return finish("/v1/outbox/" + percent_encoded(id_), nullptr, print_message);
  }
  if (retry_.parsed()) {
    const std::string body = "{}";
    return finish("/v1/outbox/" + percent_encoded(id_) + "/retry", &body, print_message);
  }
  std::string target = "/v1/outbox";
  add_parameter(target, "state", state_);
  add_parameter(target, "destination", destination_);
  add_parameter(target, "operation_ref", operation_ref_);
  add_parameter(target, "limit", number_or_nothing(limit_));
  add_parameter(target, "cursor", cursor_);
  return finish(target, nullptr, print_messages);
}

DlqCommand::DlqCommand(const Command& program)
    : BulkCommand(program, "dlq", "See dead letters, and redrive or discard them"),
      list_(declare("list", "List a page of dead letters, oldest first")),
      show_(declare("show", "Show one message with its history")),
      redrive_(declare("redrive", "Send dead letters again")),
      discard_(declare("discard", "Discard dead letters; they are never sent again")) {
  list_.add_option("--cursor", cursor_, "continue after an earlier page");
  show_.add_option("id", id_, "the message's id: 32 hexadecimal digits")
      .required()
      .valid(why_no_id);
  for (const auto& one : {list_, redrive_, discard_}) {
    one.add_option("--destination", destination_, "only to this destination");
    one.add_option("--limit", limit_, "this many at most").between(1, 1'000);
  }
  for (const auto& [one, has_rate] :
       {std::pair(redrive_, HasRate::yes), std::pair(discard_, HasRate::no)}) {
    one.add_option("id", id_, "one message's id; without it give --destination, --type or --all")
        .valid(why_no_id);
    one.add_option("--type", type_, "only of this type");
    one.add_flag("--all", all_, "every dead letter; not with an id, --destination or --type");
    one.add_flag("--dry-run", dry_run_, "print what would be done, and change nothing");
    one.add_option("--reason", reason_, "why, for the message's history").required();
    one.add_flag("--job", as_job_,
                 "as a job, of any number of messages: it shows their number and asks");
    declare_job(one, has_rate);
  }
  redrive_.add_option("--rate", rate_,
                      "messages a second, above 0 and at most 1000; 10 by default");
  redrive_.add_flag("--nothing-there", nothing_there_,
                    "also messages that may have arrived: you have checked that they have not");
}

int DlqCommand::run() {
  if (show_.parsed()) {
    return finish("/v1/outbox/" + percent_encoded(id_), nullptr, print_message);
  }
  if (redrive_.parsed()) return order("redrive");
  if (discard_.parsed()) return order("discard");
  std::string target = "/v1/dlq";
  add_parameter(target, "destination", destination_);
  add_parameter(target, "limit", number_or_nothing(limit_));
  add_parameter(target, "cursor", cursor_);
  return finish(target, nullptr, print_messages);
}

int DlqCommand::order_job(const char* what) {
  const bool is_part = !destination_.empty() || !type_.empty();
  if (!id_.empty() || limit_ || dry_run_) {
    return complain("--job is about all that match: leave out id, --limit and --dry-run", usage);
  }
  if (all_ == is_part) {
    return complain("give --all, or else --destination or --type", usage);
  }
  std::optional<unsigned> rate;
  if (rate_) rate = static_cast<unsigned>(*rate_);
  if (rate_ && (*rate_ < 1 || *rate_ != static_cast<double>(*rate))) {
    return complain("--rate of a job is a whole number", usage);
  }
  json::Writer out;
  out.begin_object();
  if (nothing_there_) out.flag("nothing_there", true);
  out.member("reason", reason_);
  out.end_object();
  return run_job("dlq." + std::string(what), {{"destination", destination_}, {"type", type_}},
                 out.take(), rate);
}

int DlqCommand::order(const char* what) {
  if (as_job_) return order_job(what);
  if (has_job_options()) return complain("--expect, --rate and --detach need --job", usage);
  json::Writer out;
  out.begin_object();
  if (!id_.empty()) out.member("id", id_);
  if (!destination_.empty()) out.member("destination", destination_);
  if (!type_.empty()) out.member("type", type_);
  if (all_) out.flag("all", true);
  if (limit_) out.member("limit", *limit_);
  if (dry_run_) out.flag("dry_run", true);
  if (nothing_there_) out.flag("nothing_there", true);
  if (rate_) {
    out.name("rate");
    out.real(*rate_);
  }
  out.member("reason", reason_);
  out.end_object();
  const std::string body = out.take();
  return finish("/v1/dlq/" + std::string(what), &body, print_ordered);
}

}  // namespace idem::cli
