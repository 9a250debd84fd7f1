/*
 * The compute capability of the device, as ten times its major number and its minor number: 90, or what the environment
 * has as CUDA_HOST_CAPABILITY. Every capability runs every kernel here.
 */
#ifndef CUDA_HOST_CAPABILITY_H
#define CUDA_HOST_CAPABILITY_H

#ifdef __cplusplus
extern "C" {
#endif

/* From now on; 0: that of the environment. */
void cuda_host_set_capability(int capability);

#ifdef __cplusplus
}
#endif

#endif
