/* SPDX-License-Identifier: MIT
 *
 * Made by fit_tables.py: tables of math/float64_avx512.h, of 16 numbers each, which two registers
 * hold. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_TABLES_H
#define TN_BACKEND_CPU_MATH_FLOAT64_TABLES_H

#define TN__TABLE(name) static const double name[16] __attribute__((aligned(64)))

/* 2^(j/16) */
TN__TABLE(tn__power_table) = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0,
};

/* What rounding took from tn__power_table, divided by it. */
TN__TABLE(tn__power_rest) = {
    0x0.0p+0, 0x1.79aa65d837b6dp-54, -0x1.01b15eaa59348p-55, 0x1.68efde3a8a894p-54,
    0x1.34d754db0abb6p-55, 0x1.59f48a72a4c6dp-55, 0x1.690cebb7aafb0p-56, 0x1.063e1e21c5409p-54,
    -0x1.3b3efbf5e2228p-54, -0x1.b32dcb94da51dp-56, 0x1.db72fc1f0eab4p-55, 0x1.1affc2b91ce27p-56,
    0x1.c1a7792cb3387p-55, 0x1.36eae30af0cb3p-56, 0x1.4a385a63d07a7p-56, -0x1.ff7128fd391f0p-55,
};

/* Numbers c next to 1/m for m from 1 + j/16 to 1 + (j + 1)/16; 1 and 1/2 at the ends, so that
 * logarithms near 0 are precise. */
TN__TABLE(tn__inverse_table) = {
    0x1.0000000000000p+0, 0x1.d400000000000p-1, 0x1.bb00000000000p-1, 0x1.a400000000000p-1,
    0x1.9000000000000p-1, 0x1.7d00000000000p-1, 0x1.6c00000000000p-1, 0x1.5d00000000000p-1,
    0x1.4e00000000000p-1, 0x1.4100000000000p-1, 0x1.3500000000000p-1, 0x1.2a00000000000p-1,
    0x1.1f00000000000p-1, 0x1.1600000000000p-1, 0x1.0d00000000000p-1, 0x1.0000000000000p-1,
};

/* -ln c in two parts; the first is a multiple of 2^-40. */
TN__TABLE(tn__ln_high) = {
    0x0.0p+0, 0x1.700d30aeb0000p-4, 0x1.28753bc118000p-3, 0x1.95a5adcf70000p-3,
    0x1.f991c6cb38000p-3, 0x1.2e9e2bce14000p-2, 0x1.5d5bddf594000p-2, 0x1.8873658328000p-2,
    0x1.b56fa04464000p-2, 0x1.de16b56ef8000p-2, 0x1.028d2d6a96000p-1, 0x1.151c3f6f2a000p-1,
    0x1.285e0842ca000p-1, 0x1.38ae217198000p-1, 0x1.4987ace0da000p-1, 0x1.62e42fefa4000p-1,
};

TN__TABLE(tn__ln_low) = {
    0x0.0p+0, -0x1.f8f85c959884bp-43, 0x1.5d2538d64c0bap-42, 0x1.7f22858a0ff6fp-47,
    0x1.9bcbecca0cdf3p-42, -0x1.d79fe7dae5c48p-42, 0x1.f2fa6afbadcd1p-42, -0x1.988e21f7fc497p-45,
    -0x1.6f6adad27be67p-42, 0x1.0f0467f37f23bp-42, 0x1.fa3fec303d080p-44, -0x1.3dbb2f45275c9p-42,
    0x1.c1c4d866d5f22p-44, -0x1.2316f576aad35p-42, 0x1.760fb4571acbdp-42, -0x1.8432a1b0e2634p-43,
};

/* -log2 c in two parts; the first is a multiple of 2^-40. */
TN__TABLE(tn__log2_high) = {
    0x0.0p+0, 0x1.097e38ce60000p-3, 0x1.abb2ca9ec8000p-3, 0x1.249cd2b13c000p-2,
    0x1.6cb0f6865c000p-2, 0x1.b495d4e918000p-2, 0x1.f804ae8d0c000p-2, 0x1.1b17e849ae000p-1,
    0x1.3b8b1c68fa000p-1, 0x1.58de3bf8b8000p-1, 0x1.7502cc4a28000p-1, 0x1.8fc924c89a000p-1,
    0x1.ab9151be16000p-1, 0x1.c31a27dd00000p-1, 0x1.db694903da000p-1, 0x1.0000000000000p+0,
};

TN__TABLE(tn__log2_low) = {
    0x0.0p+0, 0x1.924ae921f7ecap-45, -0x1.71b3a63cddadfp-44, 0x1.ad89a083e072ap-43,
    0x1.1d406db502403p-43, 0x1.7dd4bcb97f73cp-44, 0x1.a0331af2e6feap-43, -0x1.ecf4dff1e8ea2p-44,
    0x1.bb4b69336b66ep-43, 0x1.258110a38f4e9p-44, -0x1.1feb2fc708a78p-43, 0x1.908df8ec933b3p-42,
    0x1.1badba7fbb3d2p-42, 0x1.69378d0928989p-42, -0x1.68f2268b3cd45p-42, 0x0.0p+0,
};

/* -log10 c in two parts; the first is a multiple of 2^-40. */
TN__TABLE(tn__log10_high) = {
    0x0.0p+0, 0x1.3faf7c6640000p-5, 0x1.0180066490000p-4, 0x1.605735eea0000p-4,
    0x1.b721cd1710000p-4, 0x1.06d9bc53c0000p-3, 0x1.2f7301cf50000p-3, 0x1.54e0df3198000p-3,
    0x1.7bf3bde098000p-3, 0x1.9f433807e8000p-3, 0x1.c12660c730000p-3, 0x1.e163d527e8000p-3,
    0x1.016bdf6a18000p-2, 0x1.0f972f8800000p-2, 0x1.1e39e209bc000p-2, 0x1.34413509f8000p-2,
};

TN__TABLE(tn__log10_low) = {
    0x0.0p+0, -0x1.f3e4ce873f056p-42, 0x1.40b9bf9d17f87p-43, -0x1.e83c30dc5e826p-42,
    0x1.5f8a57d982e77p-42, 0x1.4a0637bb87e91p-42, -0x1.7851c7972ce60p-43, 0x1.0ca922cd70acap-44,
    0x1.f301ff47b93c9p-43, -0x1.f2832955d7d26p-45, 0x1.a1825c1fa039ep-44, -0x1.7314b06e8b60ep-43,
    0x1.77bf652b01c58p-50, -0x1.854f9e3890910p-43, 0x1.0affd57680ae8p-42, -0x1.80433b83b532ap-44,
};

/* The sine of j pi/16, rounded, and what rounding took. */
TN__TABLE(tn__sine_table) = {
    0x0.0p+0, 0x1.8f8b83c69a60bp-3, 0x1.87de2a6aea963p-2, 0x1.1c73b39ae68c8p-1,
    0x1.6a09e667f3bcdp-1, 0x1.a9b66290ea1a3p-1, 0x1.d906bcf328d46p-1, 0x1.f6297cff75cb0p-1,
    0x1.0000000000000p+0, 0x1.f6297cff75cb0p-1, 0x1.d906bcf328d46p-1, 0x1.a9b66290ea1a3p-1,
    0x1.6a09e667f3bcdp-1, 0x1.1c73b39ae68c8p-1, 0x1.87de2a6aea963p-2, 0x1.8f8b83c69a60bp-3,
};

TN__TABLE(tn__sine_rest) = {
    0x0.0p+0, -0x1.26d19b9ff8d82p-57, -0x1.72cedd3d5a610p-57, 0x1.b25dd267f6600p-55,
    -0x1.bdd3413b26456p-55, 0x1.9f630e8b6dac8p-60, 0x1.457e610231ac2p-56, 0x1.562172a361fd3p-56,
    0x0.0p+0, 0x1.562172a361fd3p-56, 0x1.457e610231ac2p-56, 0x1.9f630e8b6dac8p-60,
    -0x1.bdd3413b26456p-55, 0x1.b25dd267f6600p-55, -0x1.72cedd3d5a610p-57,
    -0x1.26d19b9ff8d82p-57,
};

/* The cosine of j pi/16, rounded, and what rounding took. */
TN__TABLE(tn__cosine_table) = {
    0x1.0000000000000p+0, 0x1.f6297cff75cb0p-1, 0x1.d906bcf328d46p-1, 0x1.a9b66290ea1a3p-1,
    0x1.6a09e667f3bcdp-1, 0x1.1c73b39ae68c8p-1, 0x1.87de2a6aea963p-2, 0x1.8f8b83c69a60bp-3,
    0x0.0p+0, -0x1.8f8b83c69a60bp-3, -0x1.87de2a6aea963p-2, -0x1.1c73b39ae68c8p-1,
    -0x1.6a09e667f3bcdp-1, -0x1.a9b66290ea1a3p-1, -0x1.d906bcf328d46p-1, -0x1.f6297cff75cb0p-1,
};

TN__TABLE(tn__cosine_rest) = {
    0x0.0p+0, 0x1.562172a361fd3p-56, 0x1.457e610231ac2p-56, 0x1.9f630e8b6dac8p-60,
    -0x1.bdd3413b26456p-55, 0x1.b25dd267f6600p-55, -0x1.72cedd3d5a610p-57,
    -0x1.26d19b9ff8d82p-57, 0x0.0p+0, 0x1.26d19b9ff8d82p-57, 0x1.72cedd3d5a610p-57,
    -0x1.b25dd267f6600p-55, 0x1.bdd3413b26456p-55, -0x1.9f630e8b6dac8p-60,
    -0x1.457e610231ac2p-56, -0x1.562172a361fd3p-56,
};

/* Where the polynomials of tn__erf_table have their origins d = 0: next to j 0.383, where the error
 * function is almost a float64. */
TN__TABLE(tn__erf_center) = {
    0x0.0p+0, 0x1.883126e970d50p-2, 0x1.883126e970d50p-1, 0x1.2624dd2ede9fcp+0,
    0x1.883126e3e2d50p+0, 0x1.ea3d709eab0a4p+0, 0x1.2624dd2efa9fcp+1, 0x1.572b020c5f3a6p+1,
    0x1.883126e946d50p+1, 0x1.b9374bc671efap+1, 0x1.ea3d70a40f8a4p+1, 0x1.0da1cabf60927p+2,
    0x1.2624dd32085fcp+2, 0x1.3ea7efa09fed1p+2, 0x1.572b020f377a6p+2, 0x1.6fae147dcf07bp+2,
};

/* erf(center + d) = row 0 + d + d (row 1 + d row 2 + ...) */
static const double tn__erf_table[14][16] __attribute__((aligned(64))) = {
    {
        0x0.0p+0, 0x1.a5d292a10ab04p-2, 0x1.7150c04cb6dcap-1, 0x1.caa949e3403dbp-1,
        0x1.f080cf378d9e3p-1, 0x1.fc895bc983c2bp-1, 0x1.ff68a9d063464p-1, 0x1.ffec5fafe785dp-1,
        0x1.fffe12c7fea76p-1, 0x1.ffffdb73ac72ep-1, 0x1.fffffdf5bf9cap-1, 0x1.ffffffea13be6p-1,
        0x1.ffffffff4f0d5p-1, 0x1.fffffffffbd06p-1, 0x1.ffffffffffed0p-1, 0x1.ffffffffffffcp-1,
    },
    {
        0x1.06eba8214db69p-3, -0x1.a3016364ce8fep-6, -0x1.7d6a6a19a4ee3p-2,
        -0x1.65b2eb5e4f29ap-1, -0x1.c8bcf72571127p-1, -0x1.f13d96515fc5bp-1,
        -0x1.fd0f70b890f45p-1, -0x1.ff90389664356p-1, -0x1.fff39e6247f1dp-1,
        -0x1.fffefa2e61906p-1, -0x1.ffffefdf3641ap-1, -0x1.ffffff42553bcp-1,
        -0x1.fffffff980a17p-1, -0x1.ffffffffd5816p-1, -0x1.ffffffffff30cp-1,
        -0x1.fffffffffffd1p-1,
    },
    {
        0x1.023e878c09048p-61, -0x1.7e297c9cd6239p-2, -0x1.ec3836eb4b147p-2,
        -0x1.62957bb2c5570p-2, -0x1.52a5072205a63p-3, -0x1.c43a919a161f0p-5,
        -0x1.b0587532af171p-7, -0x1.2badebc6debf1p-9, -0x1.2f7da12cba4bbp-12,
        -0x1.c33ea776b0ad1p-16, -0x1.ee2a10f31bb6ap-20, -0x1.8f889daf968eap-24,
        -0x1.ddcd8945e733bp-29, -0x1.a7291f789400dp-34, -0x1.15d34b28b373dp-39,
        -0x1.0eaaa435e17b1p-45,
    },
    {
        -0x1.812746b0379e9p-2, -0x1.d60cf993ea859p-3, 0x1.2952aa0f0883cp-5, 0x1.517cde694d3fbp-3,
        0x1.102fc42a3281bp-3, 0x1.f2a0e417057bep-5, 0x1.2bd1ed68f7dffp-6, 0x1.f25e06d144e66p-9,
        0x1.2574f05b9e766p-11, 0x1.f0a9772317825p-15, 0x1.30b083788cff9p-18,
        0x1.10a2ec8340f71p-22, 0x1.65556828426b3p-27, 0x1.5812044ee552fp-32,
        0x1.e7ee502c8e382p-38, 0x1.fe7967f5c8771p-44,
    },
    {
        0x1.071fc62c3c1a4p-46, 0x1.58ca16d651dbcp-3, 0x1.2bad7f4b83dc3p-3, 0x1.54053c18f1f85p-6,
        -0x1.7e74198fbe0d8p-5, -0x1.46b19f9a3aa62p-5, -0x1.106f8504104ccp-6,
        -0x1.1c15887eb413fp-8, -0x1.8efe77d6f5767p-11, -0x1.86650cdec0849p-14,
        -0x1.0f2667d80ef0fp-17, -0x1.0e81cfac8605bp-21, -0x1.86aafa013d800p-26,
        -0x1.9aa6609335d88p-31, -0x1.3b75aad8935f5p-36, -0x1.634e79e85d569p-42,
    },
    {
        0x1.ce2f21a033808p-4, 0x1.60c61c451e8c9p-5, -0x1.c87b5d2950c5fp-5, -0x1.e31f3cccbd4dcp-5,
        -0x1.71068b3fdff88p-7, 0x1.92a2c0beabe0fp-7, 0x1.40f42146d935dp-7, 0x1.cbcb1d96f1ffep-9,
        0x1.90f853c742234p-11, 0x1.cfc6e67a90e1cp-14, 0x1.71b2cadb82bf7p-17,
        0x1.9ef68b134dcf6p-21, 0x1.4c4d48c012f19p-25, 0x1.7f1eb1f238f31p-30,
        0x1.400062a8a3b07p-35, 0x1.851abc36b5bbap-41,
    },
    {
        0x1.0c35b64ae2816p-35, -0x1.9cd015f87345ep-5, -0x1.9633cffa51be6p-6,
        0x1.17663bb7ef6eep-6, 0x1.2a3321d757a04p-6, 0x1.6dd4974d57aa8p-9, -0x1.9234b821869e5p-9,
        -0x1.0363f97ce3888p-9, -0x1.2f202aabe87c2p-11, -0x1.acc64307c29b9p-14,
        -0x1.8facca5ac4612p-17, -0x1.fe9c79e18b429p-21, -0x1.c8ff5791a166ap-25,
        -0x1.228c88e82f404p-29, -0x1.08f1a5a038e31p-34, -0x1.5ce14cf048819p-40,
    },
    {
        -0x1.b82ce3cf2dd6ep-6, -0x1.368fe43669865p-8, 0x1.3245caa68a28dp-6, 0x1.14abab3c9a4fbp-7,
        -0x1.5a60f0fce2976p-8, -0x1.23cfe38ac78fbp-8, -0x1.4cbee071249bbp-12,
        0x1.64dfc36b10263p-11, 0x1.53caa67bd6b1fp-12, 0x1.37dbc6fc21a82p-14,
        0x1.5d55cdc0df989p-17, 0x1.01ea26e3d18b7p-20, 0x1.047de117ebc0cp-24,
        0x1.6fb79973c84d7p-29, 0x1.6fcc7de490021p-34, 0x1.072b88bd40cdfp-39,
    },
    {
        0x1.61c49651b90dep-27, 0x1.70b524a0dc28cp-7, 0x1.c6467c30fb850p-10,
        -0x1.8e6eadff7879dp-8, -0x1.ebbf547cdfda6p-10, 0x1.9209237aa6be0p-10,
        0x1.b8544cadd4f51p-11, -0x1.0dc33ca88373fp-15, -0x1.04bd23a80aa59p-13,
        -0x1.61ba4135bce49p-15, -0x1.f1aff6eac5c7bp-18, -0x1.b1e175631cf12p-21,
        -0x1.f4aeff7d81ba3p-25, -0x1.8b75977771b2cp-29, -0x1.b4452be03daebp-34,
        -0x1.549cd448dbf55p-39,
    },
    {
        0x1.565a0a8842162p-8, -0x1.300436cf4323ap-15, -0x1.018b3cf5db324p-8,
        -0x1.771c4767026c7p-14, 0x1.b4d1756f12773p-10, 0x1.bf0314376f2c0p-13,
        -0x1.8105bb58acb56p-12, -0x1.dac74a4633492p-14, 0x1.6b24d0536ea40p-16,
        0x1.2b5aa9be8622bp-16, 0x1.1fbc1a01ca99ep-18, 0x1.31e88c9e2ae45p-21,
        0x1.9a0fae0f8d68fp-25, 0x1.6e0cec92a088cp-29, 0x1.c051280bd04c2p-34,
        0x1.7faa9ea80aac4p-39,
    },
    {
        0x1.84de3ceca55dfp-21, -0x1.05cd65b4fcec6p-9, 0x1.341e2e21f46c2p-12,
        0x1.20b4aedde144dp-10, -0x1.73335881fb56ap-13, -0x1.7381a3ecc204cp-12,
        0x1.46102f87e214cp-16, 0x1.1692fb5b0924cp-14, 0x1.28a4c721e062dp-17,
        -0x1.42741d61d20bep-18, -0x1.07dfcf0b3a6ebp-19, -0x1.693b9d7a638ebp-22,
        -0x1.1fd7dc23148c7p-25, -0x1.260888d24d625p-29, -0x1.92c76239d9468p-34,
        -0x1.7b9d31062fe2ep-39,
    },
    {
        -0x1.c1e8510ad5f3cp-11, 0x1.30166fd34744cp-13, 0x1.3baa373a5a274p-11,
        -0x1.c3bf3b0ea9a62p-13, -0x1.d4690245f0685p-13, 0x1.730d4b62e5849p-14,
        0x1.b3e6baea987a2p-15, -0x1.d0b5ac10a6167p-17, -0x1.1c19c9a164fcep-17,
        0x1.882206673625fp-24, 0x1.66510d1f7cc20p-21, 0x1.6136018a73022p-23,
        0x1.5af2e1a328d60p-26, 0x1.9cbdbc80bd006p-30, 0x1.3f85f1507cf64p-34,
        0x1.4e0ecee7ffda8p-39,
    },
    {
        0x1.344bac8f1025cp-17, 0x1.2f1e581a09a8cp-12, -0x1.f17e665a030b5p-14,
        -0x1.0572a9f2e6badp-13, 0x1.58f67e0b3aaffp-14, 0x1.aef0faee764fep-16,
        -0x1.79c90e367acfap-16, -0x1.0aac9c85eab92p-18, 0x1.8bafafef2a4dbp-19,
        0x1.7094f8ce67726p-21, -0x1.0c319941391abp-23, -0x1.166d9403666f4p-24,
        -0x1.6b97972d454edp-27, -0x1.05146367d6c3ep-30, -0x1.d41f4f7b9c1a4p-35,
        -0x1.14de085b84ef1p-39,
    },
    {
        0x1.c4d033e164de2p-14, -0x1.3620c90be7d49p-15, -0x1.24ffef5e605ffp-14,
        0x1.b17c13f773053p-15, 0x1.8ee8956dc8d7cp-17, -0x1.4b39ee02e2a2dp-16,
        0x1.56ef8d305fe4cp-21, 0x1.da65ecce0d707p-19, -0x1.a2d3338b2e120p-23,
        -0x1.8e0ab957f879fp-22, -0x1.5753f70805e14p-26, 0x1.3e34ade0428e7p-26,
        0x1.389ea525005e6p-28, 0x1.15e4e1a4d9947p-31, 0x1.21ac91c4de4d8p-35,
        0x1.821554047227fp-40,
    },
};

/* The origins of the polynomials of tn__erfc_table. */
TN__TABLE(tn__erfc_center) = {
    0x1.4000000000000p+0, 0x1.c000000000000p+0, 0x1.2000000000000p+1, 0x1.6000000000000p+1,
    0x1.c000000000000p+1, 0x1.2000000000000p+2, 0x1.6000000000000p+2, 0x1.a000000000000p+2,
    0x1.0000000000000p+3, 0x1.4000000000000p+3, 0x1.8000000000000p+3, 0x1.c000000000000p+3,
    0x1.0000000000000p-3, 0x1.8000000000000p-2, 0x1.4000000000000p-1, 0x1.c000000000000p-1,
};

/* e^(x^2) erfc(x) = row 0 + d (row 1 + d row 2 + ...), x = center + d */
static const double tn__erfc_table[14][16] __attribute__((aligned(64))) = {
    {
        0x1.78a692138767ap-2, 0x1.23cfc2f1dc7e0p-2, 0x1.d94446d627932p-3, 0x1.8c9eb68ff27d7p-3,
        0x1.3e0a99a0ee914p-3, 0x1.f5b2a049cf4c6p-4, 0x1.9d8a8f2284f2cp-4, 0x1.5f75c42e97171p-4,
        0x1.1ea8c4009b459p-4, 0x1.cbe831f997124p-5, 0x1.7fd46c5e0864dp-5, 0x1.494bb2ce2924fp-5,
        0x1.bf16ef058facfp-1, 0x1.5f28ade3ca4acp-1, 0x1.1d16b5809eaf6p-1, 0x1.db747ee409ac5p-2,
    },
    {
        -0x1.abaacdbfa8b07p-3, -0x1.0c3d538446447p-3, -0x1.6a70d2bb37411p-4,
        -0x1.0305781330099p-4, -0x1.5285d2eb1ef74p-5, -0x1.aa3eb6a946f7ep-6,
        -0x1.238ca71b93fc3p-6, -0x1.a6e2cf277a0cbp-7, -0x1.1a5881c7389ebp-7,
        -0x1.6c55c82b4b6b8p-8, -0x1.fc477b46d665ap-9, -0x1.76711f8b6cf4dp-9,
        -0x1.d1f52e46ef826p-1, -0x1.3a5c679d7bb59p-1, -0x1.babd0e4f1a24dp-2,
        -0x1.4369f60195edcp-2,
    },
    {
        0x1.b56f45eef7e3fp-4, 0x1.c8d0cef0f8107p-5, 0x1.0615670e25a7ap-5, 0x1.43b98bac83823p-6,
        0x1.5d581133377e1p-7, 0x1.62c12cb5f7555p-8, 0x1.95252b932efdcp-9, 0x1.f75ef7a0fb2dap-10,
        0x1.14108e58a9a1dp-10, 0x1.1f3df0de32f39p-11, 0x1.4f67f473cc4f3p-12,
        0x1.a8b73429cebcbp-13, 0x1.84d8493cb1bcap-1, 0x1.d28c0e1177cd5p-2, 0x1.2577420fcd07dp-2,
        0x1.80ef8f454cf88p-3,
    },
    {
        -0x1.9b635ac624ac6p-5, -0x1.6cb52fe48945cp-6, -0x1.6883f9919a179p-7,
        -0x1.84e9ab30e6ab3p-8, -0x1.5e5d7e98990adp-9, -0x1.218ed930b239ap-10,
        -0x1.15976ddda3c9dp-11, -0x1.28787f0e7f4c6p-12, -0x1.0bfde7c27b378p-13,
        -0x1.c2c9072e92b7bp-15, -0x1.b92eddb6a4c35p-16, -0x1.e08bef3ab51e3p-17,
        -0x1.163c18bf90dc9p-1, -0x1.2e82dbf846fecp-2, -0x1.59c35c06f7ffep-3,
        -0x1.9d5868de0b581p-4,
    },
    {
        0x1.68a25a664836fp-6, 0x1.13648a12017fcp-7, 0x1.da595561f8c9ep-9, 0x1.c2c72fd727ba9p-10,
        0x1.5632136dcfdf2p-11, 0x1.d00785f2fe34fp-13, 0x1.774f4826df938p-14,
        0x1.59b29296c5d59p-15, 0x1.0254d2c631906p-16, 0x1.60131845e29c9p-18,
        0x1.21338ab431f6ep-19, 0x1.0f30b59c11299p-20, 0x1.6210c624bfb5ap-2, 0x1.611afb945d392p-3,
        0x1.72d46a9b3f165p-4, 0x1.9831c2c850081p-5,
    },
    {
        -0x1.299636d6c9209p-7, -0x1.8bf716a8ec6bep-9, -0x1.2bd251bb2f799p-10,
        -0x1.f99e41ecb0dd4p-12, -0x1.460abd6b5aac9p-13, -0x1.6d54b133e1dafp-15,
        -0x1.f4e46d17a1e30p-17, -0x1.8f23feccb801cp-18, -0x1.ee9dcc237103dp-20,
        -0x1.11b748bb190d3p-21, -0x1.79e921ac696d1p-23, -0x1.3156aeb80815ap-24,
        -0x1.99c4e0953b127p-3, -0x1.7a16147a55ab2p-4, -0x1.6fce5df0ba15ep-5,
        -0x1.779dd2a3da265p-6,
    },
    {
        0x1.d1b69597f0c3dp-9, 0x1.106bd5bb7a2eep-10, 0x1.6d7743d0ced6cp-12,
        0x1.131bb1602174ep-13, 0x1.2f839defbf63dp-15, 0x1.1ad6a31498c35p-17,
        0x1.4a17e192d447ap-19, 0x1.c871a15a43635p-21, 0x1.d6521ce7041a6p-23,
        0x1.a7aa39c93da5cp-25, 0x1.ec3b263ae816ep-27, 0x1.56f43e550da80p-28,
        0x1.b5f0a024145dcp-4, 0x1.78491fa6f7f5ep-5, 0x1.552fe6ffdeb0fp-6, 0x1.452648d612d72p-7,
    },
    {
        -0x1.5b8bc9419d840p-10, -0x1.68388845b02b1p-12, -0x1.aed7ebc6d4759p-14,
        -0x1.2312b2588053ep-15, -0x1.146bc3b72634ap-17, -0x1.aef8ea2825beap-20,
        -0x1.add7ac91b071bp-22, -0x1.028f4644d2ebbp-23, -0x1.bc4349406679dp-26,
        -0x1.4669c83e9ac02p-28, -0x1.3f89d9a1a8d0ep-30, -0x1.8046e788e9964p-32,
        -0x1.b506ac15502bap-5, -0x1.5f77477a14f54p-6, -0x1.2a7f4fb794306p-7,
        -0x1.0ab3832b8b5dfp-8,
    },
    {
        0x1.f0fe8a88d3cd7p-12, 0x1.cb4c7627a9281p-14, 0x1.ec774509181bap-16,
        0x1.2bfb5df4d61e0p-17, 0x1.ed2b25c545409p-20, 0x1.43551f4037b8bp-22,
        0x1.149ce494d441ap-24, 0x1.22467fa851be1p-26, 0x1.a0ee11b96670ap-29,
        0x1.f4c03e6f5fd2cp-32, 0x1.9d8c10f4b6b07p-34, 0x1.ad8cf9b9b1edap-36,
        0x1.9aa036c41a054p-6, 0x1.3662c3031cb11p-7, 0x1.efd03d10f7ac6p-9, 0x1.a0ef7f72b6698p-10,
    },
    {
        -0x1.55c08c80d2503p-13, -0x1.1b2919f9d4442p-15, -0x1.117a6a5f5a9a8p-17,
        -0x1.2da32c584b240p-19, -0x1.af5dd63878f3cp-22, -0x1.de0985254e968p-25,
        -0x1.60002e1ef0109p-27, -0x1.43003b18e1c43p-29, -0x1.84c8a36d2e9f3p-32,
        -0x1.7e6cf35b91d06p-35, -0x1.0ac37b4f40ff1p-37, -0x1.df04f5d7e453dp-40,
        -0x1.6da7b368f422dp-7, -0x1.04aee6c826dc3p-8, -0x1.88ef9a04d0a19p-10,
        -0x1.37fe711139064p-11,
    },
    {
        0x1.c55c924775cc5p-15, 0x1.5269f21f31c3cp-17, 0x1.27a9379f9d083p-19,
        0x1.2852bb5b7ada2p-21, 0x1.721b31a16be1fp-24, 0x1.5c4a449ee453dp-27,
        0x1.baf6971d5b9c3p-30, 0x1.64477e3cbb2c5p-32, 0x1.67f68236aa519p-35,
        0x1.22b081f789b4bp-38, 0x1.570410319a3d5p-41, 0x1.0a6f061f632a5p-43,
        0x1.3635c2eeaedaap-8, 0x1.a267503a59773p-10, 0x1.2a69625e9a574p-11,
        0x1.c0b1e01cd722fp-13,
    },
    {
        -0x1.22f10017ec710p-16, -0x1.88f0ad9976924p-19, -0x1.37b3d0ebc0d92p-21,
        -0x1.1ccbd4b77374fp-23, -0x1.381bbf4ef7a2ep-26, -0x1.f4c4d68de7790p-30,
        -0x1.13ce55f015bd9p-32, -0x1.85b76e23be8aap-35, -0x1.4b850132284dcp-38,
        -0x1.b836502e079ccp-42, -0x1.b7c9f54e8a3f8p-45, -0x1.27b970b7fc10bp-47,
        -0x1.f7a6329214448p-10, -0x1.421d0e650ea19p-11, -0x1.b3e48618f56fbp-13,
        -0x1.3709745c45a57p-14,
    },
    {
        0x1.71368494f04cfp-18, 0x1.c3515d18ecf45p-21, 0x1.4549d09bbbc55p-23,
        0x1.0f2b20b252eb3p-25, 0x1.0c53817265dbep-28, 0x1.6cee7cc8c027ep-32,
        0x1.5ae57d91ad3bfp-35, 0x1.ad86aabd11692p-38, 0x1.3dc50bc55b9cdp-41,
        0x1.566e80901974cp-45, 0x1.1f6d9ef303651p-48, 0x1.4d042da95bf96p-51,
        0x1.8b92bb55c2476p-11, 0x1.e0981e6774216p-13, 0x1.34f8a4a18a180p-14,
        0x1.a32a96f5de262p-16,
    },
    {
        -0x1.bde45264f2361p-20, -0x1.f0bcbed45e35cp-23, -0x1.47399628bd723p-25,
        -0x1.f44283867051ep-28, -0x1.b52b88aa6a398p-31, -0x1.fee5cbcae7c93p-35,
        -0x1.a7111368968b7p-38, -0x1.ce1abffccf1e2p-41, -0x1.2101d46a0016cp-44,
        -0x1.010e8d2a61314p-48, -0x1.6e393186f5167p-52, -0x1.6fe388e2cfdd5p-55,
        -0x1.28e74a2b0d239p-12, -0x1.578c905fd39c1p-14, -0x1.a4d0573fb9b44p-16,
        -0x1.10079ffdcee25p-17,
    },
};

#undef TN__TABLE

#endif
