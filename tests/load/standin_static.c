/* SPDX-License-Identifier: Apache-2.0 */
/* standin_static.c - an object with the host library linked in, as DeepEP's extension is: only its search path names NVSHMEM. */
int main(void)
{
    return 0;
}
