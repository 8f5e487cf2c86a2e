/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_gpu.c - GPU memory, over a driver and devices that are fakes: how it is recognized and registered, and that flushes
 * read the kind of memory that was written. The memory cannot be touched: whoever does ends the program.
 */
#include "fake_driver.h"
#include "open_rig.h"

#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LEN 65536u

static int fresh(void **state)
{
    driver_reset();
    return start(state);
}

static int all_given_back(void **state)
{
    assert_int_equal(driver_alive(), 0);
    assert_int_equal(driver_depth(), 0);
    return nothing_left(state);
}

#define GPU(f) cmocka_unit_test_setup_teardown(f, fresh, all_given_back)

/* ---- src/gpu ----------------------------------------------------------------------------------------------------- */

static void memory_is_told_apart(void **state)
{
    (void)state;
    struct gpu *gpu;
    assert_int_equal(gpu_open(NULL, &gpu), 0);
    void *device = driver_memory(1, LEN, DRIVER_DEVICE), *managed = driver_memory(0, LEN, DRIVER_MANAGED);
    void *pinned = driver_memory(0, LEN, DRIVER_PINNED);
    assert_int_equal(gpu_of(gpu, device), -ENODEV); /* CUDA is not initialised, so nobody can have got it */
    assert_int_equal(gpu_current(gpu), -ENODEV);
    driver_begin(0);
    assert_int_equal(gpu_current(gpu), 0);
    assert_int_equal(gpu_of(gpu, device), 1);
    assert_int_equal(gpu_of(gpu, (char *)device + LEN - 1), 1);
    assert_int_equal(gpu_of(gpu, managed), -ENODEV);
    assert_int_equal(gpu_of(gpu, pinned), -ENODEV);
    assert_int_equal(gpu_of(gpu, memory), -ENODEV);
    /* A thread without a context: any primary one that the process has will do, and none is made for it. */
    driver_no_context();
    assert_int_equal(gpu_current(gpu), -ENODEV);
    assert_int_equal(gpu_of(gpu, device), 1);
    assert_int_equal(gpu_of(gpu, memory), -ENODEV);
    gpu_close(gpu);
}

static void no_context_is_made(void **state)
{
    (void)state;
    struct gpu *gpu;
    int fd;
    uint64_t offset;
    void *p, *device = driver_memory(1, LEN, DRIVER_DEVICE);
    assert_int_equal(gpu_open(NULL, &gpu), 0);
    driver_begin(-1);
    assert_int_equal(gpu_of(gpu, device), -ENODEV);
    assert_int_equal(gpu_dmabuf(gpu, 1, device, LEN, &fd, &offset), -EOPNOTSUPP);
    assert_int_equal(gpu_alloc(gpu, 1, 4096, &p), -ENODEV);
    driver_begin(0);
    assert_int_equal(gpu_alloc(gpu, 1, 4096, &p), -ENODEV); /* never another device's memory */
    gpu_close(gpu);
}

static void a_device_says_what_it_can(void **state)
{
    (void)state;
    struct gpu *gpu;
    struct gpu_about about;
    assert_int_equal(gpu_open(NULL, &gpu), 0);
    driver_begin(0);
    assert_int_equal(gpu_about(gpu, 0, &about), 0);
    assert_string_equal(about.pci, "0000:3b:00.0");
    assert_true(about.dmabuf && about.host_flush && about.ordered);
    assert_int_equal(gpu_about(gpu, 1, &about), 0);
    assert_string_equal(about.pci, "0000:3c:00.0");
    assert_false(about.ordered);
    gpu_close(gpu);
}

static void a_dmabuf_covers_whole_pages(void **state)
{
    (void)state;
    struct gpu *gpu;
    int fd, last;
    uint64_t offset;
    void *begin;
    size_t len;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE);
    assert_int_equal(gpu_open(NULL, &gpu), 0);
    driver_begin(0);
    assert_int_equal(gpu_dmabuf(gpu, 0, device + 5000, 100, &fd, &offset), 0);
    assert_int_equal(driver_dmabufs(&last, &begin, &len), 1);
    assert_int_equal(fd, last);
    assert_int_equal(offset, 5000 - 4096);
    assert_ptr_equal(begin, device + 4096);
    assert_int_equal(len, 4096);
    close(fd);
    assert_int_equal(gpu_dmabuf(gpu, 0, device + 8100, 100, &fd, &offset), 0);
    driver_dmabufs(&last, &begin, &len);
    assert_ptr_equal(begin, device + 4096);
    assert_int_equal(len, 8192);
    close(fd);
    gpu_close(gpu);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

/* What the keys of a region stand for, on a rail, for bulk or for word ops. */
static struct fake_region behind(const struct braid_mem *mem, unsigned rail, bool word)
{
    struct braid_key key;
    uint32_t rkey;
    assert_int_equal(braid_mem_key(mem, &key), 0);
    memcpy(&rkey, key.bytes + 48 + rail * 8 + (word ? 4 : 0), 4);
    return fake_region(rkey);
}

static void a_region_is_one_dmabuf(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    void *begin;
    size_t len;
    int fd;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE);
    driver_begin(0);
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    struct braid_mem_options mo = {.size = sizeof(mo), .alias = device};
    assert_int_equal(braid_mem_reg(b, device + 4104, LEN - 8192, &mo, &mem), 0);
    assert_int_equal(driver_dmabufs(&fd, &begin, &len), 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* the MRs hold the memory */
    assert_int_equal(fake_remote_mrs(), 4);
    for (unsigned rail = 0; rail < 2; rail++) {
        for (int word = 0; word < 2; word++) {
            struct fake_region r = behind(mem, rail, word);
            assert_null(r.addr);
            assert_int_equal(r.fd, fd);
            assert_int_equal(r.offset, 8);
            assert_int_equal(r.len, LEN - 8192);
            assert_int_equal(r.iova, (uintptr_t)device + 4104);
        }
    }
    braid_close(b);
}

static void without_relaxed_ordering_one_key_serves_both(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE);
    driver_begin(0);
    assert_int_equal(open_with("fake0,fake1", "relaxed=off", &b), 0);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
    assert_int_equal(fake_remote_mrs(), 2);
    braid_close(b);
}

/* Who has said that there are no dma-bufs is not asked again; who had no memory has said nothing about them. */
static void a_refusal_is_remembered(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    int fd;
    void *begin;
    size_t len;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE);
    driver_begin(0);
    assert_int_equal(open_with("fake0,fake1", NULL, &b), 0);
    fake_refuse_dmabuf(-ENOMEM);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), -ENOMEM);
    fake_refuse_dmabuf(-EOPNOTSUPP);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
    assert_int_equal(driver_dmabufs(&fd, &begin, &len), 2);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
    assert_int_equal(driver_dmabufs(&fd, &begin, &len), 2);
    braid_close(b);
}

/* By peer memory the first address is pinned, and keys name the second. */
static void without_a_dmabuf_it_is_peer_memory(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        bool supported, fails;
        int refused;
    } cases[] = {
        {"dmabuf=off", true, false, 0},          {"dmabuf=on", false, false, 0},      {"dmabuf=on", true, true, 0},
        {"dmabuf=on", true, false, -EOPNOTSUPP}, {"dmabuf=on", true, false, -EINVAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct braid *b = NULL;
        struct braid_mem *mem;
        driver_reset();
        fake_reset();
        char *device = driver_memory(0, LEN, DRIVER_DEVICE), *alias = driver_memory(0, LEN, DRIVER_DEVICE);
        driver_begin(0);
        driver_dmabuf(cases[i].supported, cases[i].fails);
        fake_refuse_dmabuf(cases[i].refused);
        assert_int_equal(open_with("fake0,fake1", cases[i].setting, &b), 0);
        struct braid_mem_options mo = {.size = sizeof(mo), .alias = alias};
        assert_int_equal(braid_mem_reg(b, device, LEN, &mo, &mem), 0);
        assert_ptr_equal(behind(mem, 1, true).addr, alias);
        assert_int_equal(behind(mem, 1, true).iova, (uintptr_t)device);
        assert_int_equal(braid_mem_dereg(mem), 0);
        assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
        assert_ptr_equal(behind(mem, 0, false).addr, device);
        braid_close(b);
    }
}

static void host_memory_needs_no_alias(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem;
    driver_begin(0);
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    struct braid_mem_options mo = {.size = sizeof(mo), .alias = logged};
    assert_int_equal(braid_mem_reg(b, memory, sizeof(memory), &mo, &mem), 0);
    assert_ptr_equal(behind(mem, 0, true).addr, memory);
    braid_close(b);
}

static void what_cannot_be_registered_is_said(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem = NULL;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE), *other = driver_memory(1, LEN, DRIVER_DEVICE);
    driver_begin(0);
    driver_dmabuf(false, false);
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    fake_fail(FAKE_MR, 0, -EFAULT);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), -EFAULT);
    assert_non_null(strstr(logged, "nvidia-peermem"));
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
    assert_int_equal(braid_mem_reg(b, other, LEN, NULL, &mem), -ENOTSUP);
    assert_non_null(strstr(logged, "a context that serves GPU 0"));
    assert_int_equal(braid_mem_reg(b, device + 8, LEN, NULL, &mem), -EINVAL); /* its end is nobody's */
    assert_non_null(strstr(logged, "different kinds"));
    braid_close(b);
}

/* Peers must have been told of a line to flush by. */
static void gpu_memory_after_connecting_needs_a_line(void **state)
{
    (void)state;
    struct braid *b = NULL;
    struct braid_mem *mem = NULL;
    char *device = driver_memory(0, LEN, DRIVER_DEVICE);
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(connect_to_self(b), 0); /* without CUDA */
    driver_begin(0);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), -ENOTSUP);
    assert_non_null(strstr(logged, "were not told of a GPU"));
    assert_null(mem);
    braid_close(b);
    /* A GPU in use is no reason to fail: its memory may never be registered. */
    driver_no_memory();
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(connect_to_self(b), 0);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), -ENOMEM);
    braid_close(b);
    /* But where it has been, it is. */
    assert_int_equal(open_with("fake0", NULL, &b), 0);
    assert_int_equal(braid_mem_reg(b, device, LEN, NULL, &mem), 0);
    assert_int_equal(connect_to_self(b), -ENOMEM);
    braid_close(b);
}

/* ---- flushes ----------------------------------------------------------------------------------------------------- */

struct pair {
    struct braid *b;
    struct braid_channel *ch;
    struct braid_mem *host, *gpu;
    struct braid_key host_key, gpu_key;
    char *device;
};

static void connect_pair(struct pair *p, const char *setting)
{
    p->device = driver_memory(0, LEN, DRIVER_DEVICE);
    driver_begin(0);
    assert_int_equal(open_with("fake0,fake1", setting, &p->b), 0);
    assert_int_equal(connect_to_self(p->b), 0);
    fake_auto(false);
    p->ch = braid_channel_at(p->b, 0);
}

static void register_gpu(struct pair *p)
{
    assert_int_equal(braid_mem_reg(p->b, p->device, LEN, NULL, &p->gpu), 0);
    assert_int_equal(braid_mem_key(p->gpu, &p->gpu_key), 0);
}

static void register_host(struct pair *p)
{
    assert_int_equal(braid_mem_reg(p->b, memory, sizeof(memory), NULL, &p->host), 0);
    assert_int_equal(braid_mem_key(p->host, &p->host_key), 0);
}

/* What a READ of a lane reads: memory of this process's, or of the device. */
static bool reads_gpu(const struct verbs_send *send)
{
    assert_int_equal(send->op, VERBS_OP_READ);
    struct fake_region r = fake_region(send->rkey);
    assert_true(r.len > 0);
    return !r.addr; /* registered by dma-buf */
}

static void finish(struct pair *p)
{
    fake_auto(true);
    assert_int_equal(braid_quiet(p->ch, 0), 0);
    braid_close(p->b);
}

/* A put on each of two lanes and a signal: what the flush of the lane that is not the signal's reads. */
static bool flush_reads_gpu(const struct braid_mem *mem, const struct braid_key *key, struct braid_channel *ch,
                            char *at)
{
    struct braid_remote word = {(uintptr_t)at, key};
    for (unsigned i = 1; i <= 2; i++) {
        struct braid_remote there = {(uintptr_t)at + i * 1024, key};
        assert_int_equal(braid_put(ch, 0, there, (struct braid_local){at + i * 1024, mem}, 512, NULL), 0);
    }
    assert_int_equal(braid_signal_add(ch, 0, word, 1, NULL), 0);
    assert_int_equal(fake_pending(fake_qp(0)), 1);
    assert_int_equal(fake_pending(fake_qp(1)), 2);
    return reads_gpu(fake_send(fake_qp(1), 1));
}

static void a_flush_reads_the_kind_that_was_written(void **state)
{
    (void)state;
    struct pair p = {0};
    connect_pair(&p, "pace=off");
    register_gpu(&p);
    assert_true(flush_reads_gpu(p.gpu, &p.gpu_key, p.ch, p.device));
    finish(&p);
}

/* Memory of both kinds: what proves one visible says nothing of the other, on the own lane as little as on others. */
static void both_kinds_need_both_reads(void **state)
{
    (void)state;
    struct pair p = {0};
    struct braid_done done = {0};
    connect_pair(&p, "rails=1");
    register_gpu(&p);
    register_host(&p);
    struct verbs_qp *qp = fake_qp(0);
    struct braid_remote data = {(uintptr_t)memory, &p.host_key}, word = {(uintptr_t)p.device, &p.gpu_key};
    assert_int_equal(braid_put(p.ch, 0, data, (struct braid_local){memory, p.host}, 2048, NULL), 0);
    assert_int_equal(braid_signal_add(p.ch, 0, word, 1, &done), 0);
    /* put, READ of the one line, READ of the other; the atomic waits for them. */
    assert_int_equal(fake_pending(qp), 3);
    assert_false(reads_gpu(fake_send(qp, 1)));
    assert_true(reads_gpu(fake_send(qp, 2)));
    fake_end(qp, 0);
    fake_end(qp, 0);
    braid_progress(p.ch);
    assert_int_equal(fake_pending(qp), 1); /* one of two is not enough */
    fake_end(qp, 0);
    braid_progress(p.ch);
    assert_int_equal(fake_pending(qp), 1);
    assert_int_equal(fake_send(qp, 0)->op, VERBS_OP_FETCH_ADD);
    fake_end(qp, 0);
    braid_progress(p.ch);
    assert_int_equal(done.ok, 1);
    finish(&p);
}

/* Host memory alone, though a GPU is in use: as ever. */
static void host_memory_is_flushed_by_the_host_s_line(void **state)
{
    (void)state;
    struct pair p = {0};
    connect_pair(&p, "pace=off");
    register_host(&p);
    assert_false(flush_reads_gpu(p.host, &p.host_key, p.ch, (char *)memory));
    finish(&p);
}

/* The peer's key says which kind it is for, whatever is registered here. */
static void a_key_tells_the_kind(void **state)
{
    (void)state;
    struct pair p = {0};
    connect_pair(&p, "rails=1");
    register_host(&p);
    struct verbs_qp *qp = fake_qp(0);
    struct braid_key other = p.host_key;
    other.bytes[7] = 2;
    struct braid_remote data = {(uintptr_t)memory, &p.host_key}, word = {(uintptr_t)memory + 2048, &other};
    assert_int_equal(braid_put(p.ch, 0, data, (struct braid_local){memory, p.host}, 2048, NULL), 0);
    assert_int_equal(braid_signal_add(p.ch, 0, data, 1, NULL), 0);
    assert_int_equal(fake_pending(qp), 2); /* the atomic at once, behind the put by itself */
    assert_int_equal(braid_signal_set(p.ch, 0, word, 1, NULL), 0);
    assert_int_equal(fake_pending(qp), 4); /* two READs: a write stays behind as little as an atomic */
    finish(&p);
}

/* The answer to an atomic proves the writes before it visible, but not where they are of the other kind. */
static void an_answer_proves_nothing_of_the_other_kind(void **state)
{
    (void)state;
    struct pair p = {0};
    struct braid_rail_stats stats;
    connect_pair(&p, "rails=1");
    register_gpu(&p);
    register_host(&p);
    struct verbs_qp *qp = fake_qp(0);
    struct braid_remote first = {(uintptr_t)memory, &p.host_key}, second = {(uintptr_t)memory + 2048, &p.host_key};
    struct braid_remote word = {(uintptr_t)p.device, &p.gpu_key};
    assert_int_equal(braid_put(p.ch, 0, first, (struct braid_local){memory, p.host}, 2048, NULL), 0);
    assert_int_equal(braid_signal_add(p.ch, 0, word, 1, NULL), 0);
    assert_int_equal(braid_put(p.ch, 0, second, (struct braid_local){memory, p.host}, 2048, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        fake_end(qp, 0);
    braid_progress(p.ch);
    assert_int_equal(fake_pending(qp), 2); /* the second put, and the atomic */
    fake_end(qp, 0);
    fake_end(qp, 0);
    braid_progress(p.ch);
    /* The second put is acknowledged, no more: one to the same bytes follows it by the strict key. */
    assert_int_equal(braid_put(p.ch, 0, second, (struct braid_local){memory, p.host}, 2048, NULL), 0);
    assert_int_equal(fake_pending(qp), 1);
    assert_memory_equal(&fake_send(qp, 0)->rkey, p.host_key.bytes + 52, 4);
    assert_int_equal(braid_rail_stats_at(p.b, 0, &stats), 0);
    assert_int_equal(stats.word_ops, 1); /* READs are none */
    finish(&p);
}

/* Own memory that nobody has named may have been written by peers: all that is registered counts. */
static void own_memory_is_flushed_of_both_kinds(void **state)
{
    (void)state;
    struct pair p = {0};
    connect_pair(&p, "rails=1");
    register_gpu(&p);
    register_host(&p);
    unsigned posts = fake_calls(FAKE_POST_SEND);
    fake_auto(true);
    assert_int_equal(braid_flush_local(p.ch), 0);
    assert_int_equal(fake_calls(FAKE_POST_SEND), posts + 2);
    finish(&p);
}

/* An atomic that the target's CPU executes: it flushes its own memory before it answers, and by both lines. */
static void the_executor_flushes_both_kinds(void **state)
{
    (void)state;
    struct pair p = {0};
    struct braid_done done = {0};
    struct braid_atomic flip = {.op = BRAID_ATOMIC_XOR, .bytes = 8, .operand = 1};
    unsigned of_gpu = 0, of_host = 0;
    connect_pair(&p, "rails=1");
    register_gpu(&p);
    register_host(&p);
    struct verbs_qp *qp = fake_qp(0);
    struct braid_remote word = {(uintptr_t)p.device, &p.gpu_key};
    assert_int_equal(braid_atomic(p.ch, 0, word, &flip, NULL, &done), 0);
    for (unsigned steps = 0; done.ok + done.failed == 0 && steps < 100; steps++) {
        while (fake_pending(qp)) {
            const struct verbs_send *send = fake_send(qp, 0);
            if (send->op == VERBS_OP_READ && fake_region(send->rkey).len != LEN)
                *(reads_gpu(send) ? &of_gpu : &of_host) += 1;
            fake_end(qp, 0);
        }
        braid_progress(p.ch);
    }
    assert_int_equal(done.ok, 1);
    assert_true(of_gpu > 0 && of_gpu == of_host);
    finish(&p);
}

/* What a peer's key says of its memory must fit what it has told when connecting. */
static void a_key_of_gpu_memory_needs_a_line(void **state)
{
    (void)state;
    struct pair p = {0};
    connect_pair(&p, "rails=1");
    register_gpu(&p);
    struct braid *other = NULL;
    struct braid_mem *mem;
    driver_no_memory();
    assert_int_equal(open_with("fake0", NULL, &other), 0);
    assert_int_equal(connect_to_self(other), 0);
    fake_auto(false);
    assert_int_equal(braid_mem_reg(other, memory, sizeof(memory), NULL, &mem), 0);
    struct braid_key key;
    assert_int_equal(braid_mem_key(mem, &key), 0);
    key.bytes[7] = 2;
    struct braid_remote there = {(uintptr_t)memory, &key};
    assert_int_equal(braid_put(braid_channel_at(other, 0), 0, there, (struct braid_local){memory, mem}, 2048, NULL),
                     -EPROTO);
    assert_non_null(strstr(logged, "no flush line"));
    braid_close(other);
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GPU(memory_is_told_apart),
        GPU(no_context_is_made),
        GPU(a_device_says_what_it_can),
        GPU(a_dmabuf_covers_whole_pages),
        GPU(a_region_is_one_dmabuf),
        GPU(without_relaxed_ordering_one_key_serves_both),
        GPU(a_refusal_is_remembered),
        GPU(without_a_dmabuf_it_is_peer_memory),
        GPU(host_memory_needs_no_alias),
        GPU(what_cannot_be_registered_is_said),
        GPU(gpu_memory_after_connecting_needs_a_line),
        GPU(a_flush_reads_the_kind_that_was_written),
        GPU(both_kinds_need_both_reads),
        GPU(host_memory_is_flushed_by_the_host_s_line),
        GPU(a_key_tells_the_kind),
        GPU(an_answer_proves_nothing_of_the_other_kind),
        GPU(own_memory_is_flushed_of_both_kinds),
        GPU(the_executor_flushes_both_kinds),
        GPU(a_key_of_gpu_memory_needs_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
