/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_known.c - checks that are known to end otherwise on one fabric, with the specification's word.
 *
 * An entry is reported as a deviation (TAP: TODO), never dropped; one that has come to pass is a failure, so that the
 * table stays true. Called by conformance.c.
 */
#include "conformance.h"

#include <string.h>

static const struct conformance_known table[] = {
    {"rxe", "state_mtu_above_port", "any path MTU up to 4096 is taken; IBA Modify QP: no more than the port's", false},
    {"rxe", "state_mtu_zero", "path MTU 0 is taken; ibv_modify_qp(3) knows 256 to 4096 only", false},
    {"rxe", "state_rtr_rd_atomic_above_max", "max_dest_rd_atomic is not checked; IBA Modify QP: error above the limit",
     false},
    {"rxe", "state_post_send_in_reset", "bad_wr is not set; ibv_post_send(3): bad_wr points to the failing request",
     false},
    {"rxe", "state_post_send_in_init", "bad_wr is not set; ibv_post_send(3): bad_wr points to the failing request",
     false},
    {"rxe", "state_post_send_in_rtr", "bad_wr is not set; ibv_post_send(3): bad_wr points to the failing request",
     false},
    {"rxe", "too_long_send", "ends in operation errors; IBA 9.9.3: local length error, NAK Invalid Request", false},
    {"rxe", "too_long_send_over_mtus", "ends in operation errors; IBA 9.9.3: local length error, NAK Invalid Request",
     false},
    {"rxe", "sq_holds_what_it_says", "takes more; ibv_create_qp(3): cap is updated with the actual values", false},
    {"rxe", "rq_holds_what_it_says", "takes more; ibv_create_qp(3): cap is updated with the actual values", false},
    {"rxe", "sq_slot_held_until_polled", "slots are free when the kernel is done, before ibv_poll_cq()", false},
    {"rxe", "rq_slot_held_until_polled", "slots are free when the kernel is done, before ibv_poll_cq()", false},
    {"rxe", "srq_slot_held_until_polled", "slots are free when the kernel has taken them, before ibv_poll_cq()", false},
    {"rxe", "srq_reset_frees", "completions that nobody polled stay in the CQ; mlx5 takes them out, as IBA lets it",
     false},
    {"rxe", "srq_qp_has_no_queue", "bad_wr is not set; ibv_post_recv(3): bad_wr points to the failing request", false},
    {"rxe", "srq_too_long", "ends in operation errors; IBA 9.9.3: local length error, NAK Invalid Request", false},
    {"rxe", "srq_last_wqe", "no event; IBA 11.6.3: affiliated event, last WQE reached", false},
    {"rxe", "post_recv_in_err_flushes", "nothing comes; IBA 10.3.1: requests posted in Error complete with a flush",
     false},
    {"rxe", "event_qp_access", "no event; IBA 11.6.3: affiliated error, local access violation", false},
    {"rxe", "event_comm_est", "no event; ibv_get_async_event(3): communication established", false},
    {"rxe", "event_sq_drained", "at times no event; ibv_get_async_event(3): send queue drained", true},
    {"rxe", "event_sq_drained_after_rnr",
     "said while a request waits for its receive, and that one never ends; IBA: SQD finishes what was begun", false},
    {"rxe", "misaligned_fetch_add", "refused by ibv_post_send(); IBA 9.4.5: the responder answers Invalid Request",
     false},
    {"rxe", "misaligned_cmp_swp", "refused by ibv_post_send(); IBA 9.4.5: the responder answers Invalid Request",
     false},
    {"rxe", "local_write_bad_key", "QP operation error; IBA 9.9.2: local protection error", false},
    {"rxe", "local_write_other_pd", "QP operation error; IBA 9.9.2: local protection error", false},
    {"rxe", "local_write_deregistered",
     "QP operation error, where it is not done before; IBA 9.9.2: local protection error", true},
    {"rxe", "local_error_behind_reads", "QP operation error; IBA 9.9.2: local protection error", false},
    {"rxe", "recv_bad_key", "QP operation error; IBA 9.9.3: local protection error", false},
    {"rxe", "ud_own_qkey", "sent as it is; IBA 10, Q_Keys: with the highest bit set it means the queue pair's own",
     false},
    {"rxe", "ud_write_refused", "taken; ibv_post_send(3): UD knows SEND and SEND_WITH_IMM only", false},
    {"rxe", "ud_read_refused", "taken; ibv_post_send(3): UD knows SEND and SEND_WITH_IMM only", false},
    {"rxe", "ud_atomic_refused", "taken; ibv_post_send(3): UD knows SEND and SEND_WITH_IMM only", false},
    {"rxe", "ud_send_queue_error", "the whole queue pair goes to ERR; IBA 10.3.1: the send queue alone, to SQE", false},
    /* The emulator with switches of unkind= on. */
    {"emu-ooo", "write_order", "unkind=ooo: WRITEs pass each other, as where mlx5 places out of order", true},
    {"emu-ackvis", "fetch_add_count", "unkind=ackvis: the sum may be seen after the last atomic's answer", true},
    {"emu-all", "write_order", "unkind=ooo: WRITEs pass each other, as where mlx5 places out of order", true},
    {"emu-all", "fetch_add_count", "unkind=ackvis: the sum may be seen after the last atomic's answer", true},
};

const struct conformance_known *conformance_known_find(const char *fabric, const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].name && !strcmp(table[i].fabric, fabric) && !strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}
