#include "cli/commands/store_copy_verb.hpp"

#include "cli/commands/store_complaint.hpp"
#include "cli/commands/store_copy_run.hpp"
#include "cli/exit_code.hpp"
#include "cli/process/resources.hpp"

#include <csignal>
#include <cstdio>

namespace idem::cli {
namespace {

/// A kind that can be copied; the error is a sentence.
std::expected<const KnownKind*, std::string> kind_of(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  const KnownKind* const kind = known_kind_of(url);
  if (kind != nullptr) return kind;
  return std::unexpected(url == "memory:" ? "memory: keeps nothing that could be copied"
                                          : "name the truth of the hybrid store: what is in its "
                                            "cache is in the truth, too");
}

}  // namespace

StoreCopyVerb::StoreCopyVerb(const Command& copy) : copy_(copy) {
  copy_.add_option("from", from_, "URL of the store to be copied").required();
  copy_.add_option("to", to_, "URL of the copy, a store that does not exist yet").required();
  copy_.add_flag("--prepare", prepare_,
                 "copy what is there while gateways serve from FROM, as often as you like, so that "
                 "the copy itself is short; the copy is not finished by it");
  copy_.add_flag("--keep-source", keep_source_,
                 "leave FROM usable: for a copy that no client of FROM uses");
  copy_.add_flag("--undo", undo_,
                 "make FROM usable again that was closed for TO, while TO is not finished");
  copy_.add_option("--lost-copy", lost_copy_,
                   "the store_id of an earlier copy, which FROM was closed for and which is lost");
}

int StoreCopyVerb::run(bool json) const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  raise_descriptor_limit();
  if (int{prepare_} + int{keep_source_} + int{undo_} > 1) {
    return complain_of_store("give one of --prepare, --keep-source and --undo", usage);
  }
  const auto from = kind_of(from_);
  if (!from) return complain_of_store(from.error(), usage);
  const auto to = kind_of(to_);
  if (!to) return complain_of_store(to.error(), usage);
  const CopyOrder order{from_, to_, prepare_, keep_source_, lost_copy_};
  if (undo_) {
    const auto undone = undo_copy(order, **from, **to);
    if (!undone) return complain_of_store(undone.error().why, undone.error().code);
    print_undone(json);
    return done;
  }
  const auto report = run_copy(order, **from, **to);
  if (!report) return complain_of_store(report.error().why, report.error().code);
  print(*report, json);
  return done;
}

}  // namespace idem::cli
