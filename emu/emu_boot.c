/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_boot.c - the bootstrap of virtual time: barrier and alltoall among the PEs, outside the emulated wire, as a job
 * launcher gives them. Called through emu_sim_api.
 */
#include "emu_sim_int.h"

#include <errno.h>
#include <string.h>

enum { EMU_BOOT_NS = 20000 }; /* what a launcher's collective takes at least */

static void emu_boot_deliver(struct emu_sim *s)
{
    struct emu_meeting *m = &s->meeting;

    for (int from = 0; m->bytes && from < s->n_pes; from++) {
        for (int to = 0; to < s->n_pes; to++)
            memcpy((char *)m->recv[to] + m->bytes * (size_t)from, (const char *)m->send[from] + m->bytes * (size_t)to,
                   m->bytes);
    }
}

static void emu_boot_end_round(struct emu_sim *s)
{
    struct emu_meeting *m = &s->meeting;

    if (m->rc == 0)
        emu_boot_deliver(s);
    m->last_rc = m->rc;
    m->round++;
    m->arrived = 0;
    m->rc = 0;
    for (int i = 0; i < s->n_pes; i++)
        emu_sim_wake(&s->pe[i]);
}

static int emu_boot_meet(const void *send, void *recv, size_t bytes, const char *what)
{
    struct emu_pe *pe = emu_sim_self();
    struct emu_meeting *m;
    uint64_t round;

    if (!pe)
        return -ENOTSUP;
    m = &pe->sim->meeting;
    pe->owner.last_call = what;
    pe->owner.fabric->clock->charge(pe->owner.fabric, EMU_BOOT_NS);
    if (pe->sim->canceled)
        return -ECANCELED; /* others have left this meeting: their buffers are gone */
    pe->sim->looked = false;
    if (m->arrived == 0)
        m->bytes = bytes;
    else if (m->bytes != bytes)
        m->rc = -EINVAL; /* PEs disagree on the block size, or one is in a barrier: an error for all of them */
    m->send[pe->owner.index] = send;
    m->recv[pe->owner.index] = recv;
    round = m->round;
    if (++m->arrived == pe->sim->n_pes) {
        emu_boot_end_round(pe->sim);
        return m->last_rc;
    }
    while (m->round == round) {
        int rc = emu_sim_sleep(pe, UINT64_MAX, what);

        if (rc)
            return rc;
    }
    return m->last_rc;
}

int emu_boot_barrier(void)
{
    return emu_boot_meet(NULL, NULL, 0, "barrier");
}

int emu_boot_alltoall(const void *send, void *recv, size_t bytes_each)
{
    return bytes_each ? emu_boot_meet(send, recv, bytes_each, "alltoall") : -EINVAL;
}
