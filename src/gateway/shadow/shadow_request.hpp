#pragma once

#include "gateway/auth/scope.hpp"
#include "gateway/gateway.hpp"
#include "gateway/kept_head.hpp"
#include "gateway/keyed/judged_key.hpp"
#include "gateway/keyed/shadow_record.hpp"
#include "gateway/passthrough/onlooker.hpp"
#include "gateway/shadow/shadow_room.hpp"
#include "loop/latch.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace idem::gateway {

/// One request of a shadow route on its way, and what enforcement would do with it: judged by the
/// functions that serve keyed requests, on copies, once the whole request is on its way. The
/// request waits for nothing here. Its decision is counted once. One loop's thread.
class ShadowRequest final : public Onlooker, public std::enable_shared_from_this<ShadowRequest> {
 public:
  /// What a loop's observations use; outlives them.
  struct Around {
    Loop& loop;
    GatewayShared& shared;
    ScopeReader& scopes;
  };

  /// Null: there is no room, which is counted. `route` is one of `settings`.
  static std::shared_ptr<ShadowRequest> begin(const Around& around, SharedSettings settings,
                                              const Route& route, const http::ServerStream& client);
  ShadowRequest(const Around& around, SharedSettings settings, const Route& route,
                const http::ServerStream& client);
  ~ShadowRequest() override;

  void request_piece(std::string_view piece) override;
  void request_whole() override;
  void not_sent() override;
  void answered(const Answer& answer) override;
  void answer_piece(std::size_t bytes, bool is_last) override;
  void lost(Loss loss) override;
  /// Nothing more will come of the request.
  void over();

 private:
  /// Of a decision by the head alone, or of the key that goes on.
  bool judge_head();
  Task<void> run(std::shared_ptr<ShadowRequest> self);
  Task<void> observe();
  Task<void> wait_for(Turns& turns, Turns::Taken taken);
  Task<bool> find_existing();
  Task<std::expected<Reserve, http::Refusal>> make_digest();
  Task<void> ask(Reserve reserve);
  Task<void> settle(RecordId id, Attempt attempt);
  Task<void> release_late(RecordId id, AttemptRef attempt);
  Task<bool> write(StoreCall call);

  void take_outcome(const ReserveOutcome& outcome);
  void decide(metrics::Shadowed decision, std::string_view why = {});
  void decide(const Problem& problem);
  void not_observed(metrics::NotObserved reason);
  metrics::ShadowSeen seen() const;
  void end(ShadowEnding ending, int status);
  bool is_late() const;
  bool make_room(std::size_t bytes);
  void drop_body();
  void give_place();

  const Around around_;
  ShadowRoom& room_;
  metrics::Shadow& table_;
  const SharedSettings settings_;
  const Route& route_;
  const KeptHead head_;
  const std::optional<std::string> peer_identity_;
  const std::string client_;
  bool has_place_ = true;

  std::string body_;
  std::size_t body_bytes_ = 0;  ///< Taken of the room.
  enum class Copy : std::uint8_t { going_on, too_large, no_room };
  Copy copy_ = Copy::going_on;

  bool whole_ = false;
  bool unsent_ = false;
  MonotonicTime whole_at_{};
  std::string scope_;
  std::optional<JudgedKey> judged_;
  std::optional<RecordId> id_;   ///< That a new record would have: requests of one key meet here.
  std::optional<RecordId> ref_;  ///< Of the record, once it is known.
  std::optional<metrics::Shadowed> decided_;

  AnswerFacts facts_;
  bool is_answered_ = false;
  std::size_t answer_bytes_ = 0;
  std::optional<ShadowEnding> ending_;
  int status_ = 0;  ///< Of `ending_`; 0: no answer.
  Latch ended_;
  std::shared_ptr<Turns::Turn> end_;
};

/// Passes a request of a shadow route through (pass_through), observed where there is room for
/// that. All arguments outlive the task.
Task<void> pass_in_shadow(http::ServerStream& client, http::UpstreamPool& pool,
                          const SharedSettings& settings, const Route& route, Observer& observer,
                          const ShadowRequest::Around& around);

}  // namespace idem::gateway
