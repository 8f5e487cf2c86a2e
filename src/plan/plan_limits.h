/* SPDX-License-Identifier: Apache-2.0 */
/* plan_limits.h - how many there can be. Numbers alone; part of plan.h, for the headers that it includes. */
#ifndef PLAN_LIMITS_H
#define PLAN_LIMITS_H

#define PLAN_MAX_RAILS 16
#define PLAN_MAX_LANES 16
#define PLAN_MESSAGE   PLAN_MAX_LANES /**< pseudo lane of target-executed atomics in counts; not a lane to post on */
#define PLAN_COUNTS    (PLAN_MAX_LANES + 1) /**< lanes and PLAN_MESSAGE */

#endif
