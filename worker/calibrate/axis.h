/* The points of a grid of measurements, chosen so that all of it fits into the time. Pure functions: every rank
 * chooses the same. */
#ifndef WORKER_CALIBRATE_AXIS_H
#define WORKER_CALIBRATE_AXIS_H

enum { WLB_AXIS_POINTS = 8, WLB_AXIS_FINE = 512, WLB_AXIS_MAX = 8192 };

/* The shortest side of a matrix, and the shortest document. */
enum { WLB_AXIS_SIDE_MIN = 64, WLB_AXIS_TOKENS_MIN = 16 };

/* at[] = `least` and its multiples by 2 up to WLB_AXIS_FINE, by 4 from there, all below `most`, then `most`; returns
 * how many. Speeds change much between short lengths, little between long ones. `least` is one of the two above, `most`
 * from it to WLB_AXIS_MAX. */
int wlb_axis_fill(int least, int most, double points[WLB_AXIS_POINTS]);

/* Operations of one pass over a grid whose axes all end at `most`, and `scale` times that: of products [rows x depth]
 * x [depth x columns], for a scale of 1; of causal attention forward and backward of q last queries of k keys, q <= k,
 * for a scale of heads x head_dim. */
double wlb_axis_product_flops(int most, double scale);
double wlb_axis_attention_flops(int most, double scale);

/* Pairs of a query and a key that it attends to. */
double wlb_causal_pairs(double q_tokens, double k_tokens);

/* How many equal segments of q_tokens queries are measured in one launch, so that short ones fill the device as the
 * documents of a micro-batch do. */
int wlb_axis_segments(double q_tokens);

/* The largest power of two from WLB_AXIS_FINE / 2 to WLB_AXIS_MAX at which a grid of flops(most) takes at most
 * `seconds` at `flops_per_s`; WLB_AXIS_FINE / 2 where none does. `flops` is one of the functions above. */
int wlb_axis_max(double (*flops)(int most, double scale), double scale, double flops_per_s, double seconds);

#endif
