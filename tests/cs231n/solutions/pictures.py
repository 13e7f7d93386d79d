"""features.py, image_utils.py and the helpers of the picture notebooks: histograms of gradients, jitter, mosaics, style."""

import numpy as np


def rgb2gray(rgb):
    return np.dot(rgb[..., :3], [0.299, 0.587, 0.144])


def uniform_filter(im, size):
    """scipy's, for what hog_feature needs of it: a moving mean with reflected edges."""
    out = np.asarray(im, dtype=float)
    for axis, n in enumerate(size):
        pad = [(0, 0)] * out.ndim
        pad[axis] = (n // 2, n - n // 2 - 1)
        sums = np.cumsum(np.pad(out, pad, "symmetric"), axis=axis)
        sums = np.concatenate([np.zeros_like(np.take(sums, [0], axis=axis)), sums], axis=axis)
        out = (np.take(sums, range(n, sums.shape[axis]), axis) - np.take(sums, range(sums.shape[axis] - n), axis)) / n
    return out


def hog_feature(im):
    if im.ndim == 3:
        image = rgb2gray(im)
    else:
        image = np.atleast_2d(im)
    sx, sy = image.shape
    orientations = 9
    cx, cy = (8, 8)
    gx = np.zeros(image.shape)
    gy = np.zeros(image.shape)
    gx[:, :-1] = np.diff(image, n=1, axis=1)
    gy[:-1, :] = np.diff(image, n=1, axis=0)
    grad_mag = np.sqrt(gx**2 + gy**2)
    grad_ori = np.arctan2(gy, (gx + 1e-15)) * (180 / np.pi) + 90
    n_cellsx = int(np.floor(sx / cx))
    n_cellsy = int(np.floor(sy / cy))
    orientation_histogram = np.zeros((n_cellsx, n_cellsy, orientations))
    for i in range(orientations):
        temp_ori = np.where(grad_ori < 180 / orientations * (i + 1), grad_ori, 0)
        temp_ori = np.where(grad_ori >= 180 / orientations * i, temp_ori, 0)
        cond2 = temp_ori > 0
        temp_mag = np.where(cond2, grad_mag, 0)
        orientation_histogram[:, :, i] = uniform_filter(temp_mag, size=(cx, cy))[
            round(cx / 2) :: cx, round(cy / 2) :: cy
        ].T
    return orientation_histogram.ravel()


def rgb_to_hsv(rgb):
    maxc, minc = rgb.max(-1), rgb.min(-1)
    out = np.zeros_like(rgb)
    out[..., 2] = maxc
    delta = np.ptp(rgb, axis=-1)
    s = delta > 0
    out[s, 1] = delta[s] / maxc[s]
    for k in range(3):
        idx = (rgb[..., k] == maxc) & s
        out[idx, 0] = 2.0 * k + (rgb[idx, (k + 1) % 3] - rgb[idx, (k + 2) % 3]) / delta[idx]
    out[..., 0] = (out[..., 0] / 6.0) % 1.0
    return out


def color_histogram_hsv(im, nbin=10, xmin=0, xmax=255, normalized=True):
    bins = np.linspace(xmin, xmax, nbin + 1)
    hsv = rgb_to_hsv(im / xmax) * xmax
    imhist, bin_edges = np.histogram(hsv[:, :, 0], bins=bins, density=normalized)
    imhist = imhist * np.diff(bin_edges)
    return imhist


def extract_features(imgs, feature_fns):
    num_images = imgs.shape[0]
    feature_dims = []
    first_image_features = []
    for feature_fn in feature_fns:
        feats = feature_fn(imgs[0].squeeze())
        assert len(feats.shape) == 1, "Feature functions must be one-dimensional"
        feature_dims.append(feats.size)
        first_image_features.append(feats)
    total_feature_dim = sum(feature_dims)
    imgs_features = np.zeros((num_images, total_feature_dim))
    imgs_features[0] = np.hstack(first_image_features).T
    for i in range(1, num_images):
        idx = 0
        for feature_fn, feature_dim in zip(feature_fns, feature_dims):
            next_idx = idx + feature_dim
            imgs_features[i, idx:next_idx] = feature_fn(imgs[i].squeeze())
            idx = next_idx
    return imgs_features


# ------------------------------------------------------------------ vis_utils.py
def visualize_grid(Xs, ubound=255.0, padding=1):
    (N, H, W, C) = Xs.shape
    grid_size = int(np.ceil(np.sqrt(N)))
    grid_height = H * grid_size + padding * (grid_size - 1)
    grid_width = W * grid_size + padding * (grid_size - 1)
    grid = np.zeros((grid_height, grid_width, C))
    next_idx = 0
    y0, y1 = 0, H
    for y in range(grid_size):
        x0, x1 = 0, W
        for x in range(grid_size):
            if next_idx < N:
                img = Xs[next_idx]
                low, high = np.min(img), np.max(img)
                grid[y0:y1, x0:x1] = ubound * (img - low) / (high - low)
                next_idx += 1
            x0 += W + padding
            x1 += W + padding
        y0 += H + padding
        y1 += H + padding
    return grid


# ------------------------------------------------------------------ image_utils.py, style transfer
SQUEEZENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
SQUEEZENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def preprocess_image(img):
    return (img.astype(np.float32) / 255.0 - SQUEEZENET_MEAN) / SQUEEZENET_STD


def deprocess_image(img, rescale=False):
    img = img * SQUEEZENET_STD + SQUEEZENET_MEAN
    if rescale:
        vmin, vmax = img.min(), img.max()
        img = (img - vmin) / (vmax - vmin)
    return np.clip(255 * img, 0.0, 255.0).astype(np.uint8)


def blur_image(X):
    w_blur = np.zeros((3, 3, 3, 3))
    b_blur = np.zeros(3)
    blur = np.asarray([[1, 2, 1], [2, 188, 2], [1, 2, 1]], dtype=np.float32)
    for i in range(3):
        w_blur[i, i] = blur
    w_blur /= 200.0
    padded = np.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)), "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, w_blur) + b_blur.reshape(1, -1, 1, 1)


def jitter(X, ox, oy):
    out = np.roll(np.roll(X, ox, -1), oy, -2)
    return out


def gram_matrix(features, normalize=True):
    N, H, W, C = features.shape
    F = features.reshape(N, H * W, C)
    gram = np.matmul(F.transpose(0, 2, 1), F)
    return gram / (H * W * C) if normalize else gram


def tv_loss(img, tv_weight):
    dx = img[:, :, 1:, :] - img[:, :, :-1, :]
    dy = img[:, 1:, :, :] - img[:, :-1, :, :]
    return tv_weight * (np.sum(dx**2) + np.sum(np.square(dy)))


def tv_gradient(img, tv_weight):
    grad = np.zeros_like(img)
    dx, dy = np.diff(img, axis=2), np.diff(img, axis=1)
    grad[:, :, 1:] += 2 * tv_weight * dx
    grad[:, :, :-1] -= 2 * tv_weight * dx
    grad[:, 1:] += 2 * tv_weight * dy
    grad[:, :-1] -= 2 * tv_weight * dy
    return grad


def style_transfer(content, style, num_iters=25):
    """Style of the colours themselves: enough to run every line of the notebook."""
    content_weight, style_weight, tv_weight = 1e-1, 2.0, 1e-4
    target = gram_matrix(style)
    img = content + 0.1 * np.random.randn(*content.shape)
    N, H, W, C = img.shape
    losses = []
    for t in range(num_iters):
        difference = gram_matrix(img) - target
        losses.append(
            content_weight * np.sum((img - content) ** 2)
            + style_weight * (difference**2).sum()
            + tv_loss(img, tv_weight)
        )
        F = img.reshape(N, H * W, C)
        grad = 2 * content_weight * (img - content)
        grad += (4 * style_weight * F @ difference / (H * W * C)).reshape(img.shape) + tv_gradient(img, tv_weight)
        img -= 0.5 * grad
        if t < 20:
            img[:] = np.clip(img, -2.5, 2.5)
    return losses, img


def main():
    np.random.seed(231)
    rows, cols = np.mgrid[0:16, 0:24]
    imgs = np.random.randint(0, 120, (5, 16, 24, 3)).astype(float)
    imgs += (60 * (1 + np.sin(rows / 2.0 + cols / 3.0)))[None, :, :, None]
    results = {}
    feature_fns = [hog_feature, lambda img: color_histogram_hsv(img, nbin=10)]
    train_feats = extract_features(imgs[:, :, :16], feature_fns)
    mean_feat = np.mean(train_feats, axis=0, keepdims=True)
    train_feats -= mean_feat
    std_feat = np.std(train_feats, axis=0, keepdims=True)
    train_feats /= std_feat + 1e-9
    train_feats = np.hstack([train_feats, np.ones((train_feats.shape[0], 1))])
    results["features"] = train_feats
    results["mosaic"] = visualize_grid(imgs, padding=2).astype("uint8")
    X = preprocess_image(imgs)
    results["and back"] = deprocess_image(X), deprocess_image(X, rescale=True)
    moved = X.transpose(0, 3, 1, 2)
    for t in range(6):
        ox, oy = np.random.randint(-4, 4, 2)
        moved = jitter(moved, ox, oy)
        moved = np.clip(moved, -SQUEEZENET_MEAN[:, None, None] / 0.2, 3)
        if t % 2 == 0:
            moved = blur_image(moved)
    results["jitter"] = moved
    results["style"] = style_transfer(X[:1], X[1:2])
    saliency = np.abs(moved).max(axis=1)
    results["saliency"] = saliency, saliency[np.arange(5), saliency.argmax(axis=1)[:, 0]]
    return results
