# The server daemon and the operator's command; no LibTorch.
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN deploy/setup.sh --no-worker \
 && cmake --preset release -DAUTOLOCO_BUILD_WORKER=OFF -DAUTOLOCO_BUILD_TESTS=OFF \
 && cmake --build --preset release --target autoloco-server autoloco

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgrpc++1.51 libprotobuf32 libyaml-cpp0.7 libzstd1 libxxhash0 libhwy1 \
      libprometheus-cpp-core1.0 libprometheus-cpp-pull1.0 libsqlite3-0 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --home-dir /var/lib/autoloco --create-home autoloco
COPY --from=build /src/build/release/bin/autoloco-server /src/build/release/bin/autoloco /usr/local/bin/
USER autoloco
VOLUME /var/lib/autoloco
EXPOSE 7070 7071
ENTRYPOINT ["autoloco-server", "--state-dir", "/var/lib/autoloco"]
