/* The points of a grid of measurements, chosen so that all of it fits into the time. Pure functions: every rank
 * chooses the same. */
#ifndef WORKER_CALIBRATE_AXIS_H
#define WORKER_CALIBRATE_AXIS_H

enum { WLB_AXIS_POINTS = 8, WLB_AXIS_LEAST = 64, WLB_AXIS_MOST = 16384 };

/* at[] = WLB_AXIS_LEAST and its multiples by 4 below `most`, then `most`; returns how many. `most` is from
 * WLB_AXIS_LEAST to WLB_AXIS_MOST. */
int wlb_axis(int most, double at[WLB_AXIS_POINTS]);

/* Operations of one pass over a grid whose axes all end at `most`, and `scale` times that: of products [rows x depth]
 * x [depth x columns], for a scale of 1; of causal attention forward and backward of q last queries of k keys, q <= k,
 * for a scale of heads x head_dim. */
double wlb_axis_product_flops(int most, double scale);
double wlb_axis_attention_flops(int most, double scale);

/* Pairs of a query and a key that it sees. */
double wlb_causal_pairs(double q_tokens, double k_tokens);

/* How many equal segments of q_tokens queries are measured in one launch, so that short ones fill the device as the
 * documents of a micro-batch do. */
int wlb_axis_segments(double q_tokens);

/* The largest power of two from 4 x WLB_AXIS_LEAST to WLB_AXIS_MOST at which a grid of flops(most) takes at most
 * `seconds` at `flops_per_s`; 4 x WLB_AXIS_LEAST where none does. `flops` is one of the functions above. */
int wlb_axis_most(double (*flops)(int most, double scale), double scale, double flops_per_s, double seconds);

#endif
