/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_bond.h - how fake_verbs.c poses as a bond: what its QPs are told of wires and source ports. A part of that file, which alone
 * includes it.
 */
#ifndef FAKE_BOND_H
#define FAKE_BOND_H

void fake_bond(unsigned wires, int refusal)
{
    fake.wires = wires;
    fake.wire_error = refusal;
}

unsigned fake_wire(const struct verbs_qp *qp)
{
    return qp->wire;
}

unsigned fake_sport(const struct verbs_qp *qp)
{
    return qp->sport;
}

/* A change of state would take it back; there is none after it. */
int verbs_qp_wire(struct verbs_qp *qp, unsigned wire)
{
    if (!fake.wires || fake.wire_error)
        return fake.wire_error ? fake.wire_error : -EOPNOTSUPP;
    if (wire < 1 || wire > fake.wires)
        return -EINVAL;
    qp->wire = wire;
    return 0;
}

int verbs_qp_wire_used(struct verbs_qp *qp, unsigned *out)
{
    if (!qp->wire)
        return -EOPNOTSUPP;
    *out = qp->wire;
    return 0;
}

int verbs_qp_sport(struct verbs_qp *qp, uint16_t sport)
{
    if (!fake.wires)
        return -EOPNOTSUPP;
    qp->sport = sport;
    return 0;
}

#endif
